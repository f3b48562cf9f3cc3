"""The published measurements that scenarios repeat, as in their tables.

They come from other machines: they show the shape that a kind of store has, not what this one should reach.
"""

from __future__ import annotations

from typing import NamedTuple

from sluice_s3.loadtests.report.document import Block, Link, Links, Remark


class Source(NamedTuple):
    """Where a measurement was published."""

    words: str
    link: str = ""


SIZES_SOURCE = Source(
    "Mattermost documentation, “Backing storage benchmarks”: EBS gp3 with 3,000 IOPS, EFS and S3 of AWS.",
    "https://docs.mattermost.com/scale/backing-storage-benchmarks.html",
)
SMALL_FILES_SOURCE = Source(
    "ObjectiveFS, “Performance: Amazon EFS vs ObjectiveFS”, 11 August 2020: an EC2 z1d.6xlarge in us-east-2.",
    "https://objectivefs.com/howto/performance-amazon-efs-vs-objectivefs",
)
MIXED_SOURCE = Source(
    "S. Yeager, “Checking performance of S3 compatible systems with QSFS backing”, 30 May 2025: warp against Garage "
    "and MinIO on an SSD and on zdbfs.",
    "https://github.com/threefoldtech/qss_quantum_storage/issues/46",
)
BATCHES_SOURCE = Source(
    "Dzhuneyt, “AWS EFS Elastic vs Burstable throughput (benchmark)”, DEV Community: from a Lambda.",
    "https://dev.to/aws-builders/aws-efs-elastic-vs-burstable-throughput-benchmark-47b8",
)
THREADS_SOURCE = Source("xyzt.ai blog, “Write performance of Amazon EFS”, 30 May 2021: an EC2 instance with 8 vCPU.")


def cite(source: Source) -> Block:
    """Render a citation."""
    if source.link:
        return Links([Link(source.words, source.link)], "Source")
    return Remark(f"Source: {source.words}")


class Timed(NamedTuple):
    """Seconds: mean, standard deviation and median."""

    mean: float
    sigma: float
    p50: float


KB, MB, GB = 1_000, 1_000_000, 1_000_000_000

SIZES: dict[str, dict[str, dict[int, Timed]]] = {
    "PUT": {
        "EBS gp3": {
            100 * KB: Timed(0.00057, 0.00026, 0.00063),
            MB: Timed(0.00208, 0.00092, 0.00228),
            10 * MB: Timed(0.01815, 0.00531, 0.01823),
            100 * MB: Timed(0.58514, 0.27438, 0.79578),
            GB: Timed(7.42, 2.13, 7.99),
            10 * GB: Timed(70.66, 7.05, 80.50),
        },
        "EFS": {
            100 * KB: Timed(0.03447, 0.00633, 0.03257),
            MB: Timed(0.05743, 0.00732, 0.05816),
            10 * MB: Timed(0.18058, 0.09795, 0.15035),
            100 * MB: Timed(0.39087, 0.16632, 0.33920),
            GB: Timed(3.05, 1.09, 2.93),
            10 * GB: Timed(26.54, 2.47, 26.86),
        },
        "S3": {
            100 * KB: Timed(0.18159, 0.03905, 0.17483),
            MB: Timed(0.27713, 0.04995, 0.27936),
            10 * MB: Timed(0.46929, 0.16632, 0.46212),
            100 * MB: Timed(1.09, 0.04, 1.09),
            GB: Timed(10.65, 0.82, 10.44),
            10 * GB: Timed(109.05, 12.47, 105.13),
        },
    },
    "GET": {
        "EBS gp3": {
            100 * KB: Timed(0.00005, 0.00002, 0.00004),
            MB: Timed(0.00018, 0.00006, 0.00018),
            10 * MB: Timed(0.00127, 0.00027, 0.00116),
            100 * MB: Timed(0.01650, 0.00095, 0.01616),
            GB: Timed(0.16789, 0.00219, 0.16772),
            10 * GB: Timed(1.57, 0.03, 1.56),
        },
        "EFS": {
            100 * KB: Timed(0.00066, 0.00017, 0.00060),
            MB: Timed(0.00082, 0.00019, 0.00072),
            10 * MB: Timed(0.00783, 0.01812, 0.00168),
            100 * MB: Timed(0.07353, 0.18232, 0.01691),
            GB: Timed(0.77341, 1.76889, 0.16817),
            10 * GB: Timed(1.56, 0.02, 1.55),
        },
        "S3": {
            100 * KB: Timed(0.02855, 0.00412, 0.02763),
            MB: Timed(0.02703, 0.00428, 0.02754),
            10 * MB: Timed(0.10824, 0.00056, 0.10818),
            100 * MB: Timed(1.05, 0.00, 1.05),
            GB: Timed(10.49, 0.02, 10.49),
            10 * GB: Timed(150.66, 33.47, 146.51),
        },
    },
}
"""Of SIZES_SOURCE."""

SMALL_FILES: dict[str, list[tuple[str, float, float]]] = {
    "write": [("EFS (Burst)", 0.53, 1.0), ("EFS (Provisioned)", 0.56, 1.05), ("ObjectiveFS", 66.27, 125.04)],
    "read": [
        ("EFS (Burst)", 9.43, 1.0),
        ("EFS (Provisioned)", 10.14, 1.08),
        ("ObjectiveFS (cold cache)", 49.30, 5.23),
        ("ObjectiveFS (warm disk cache)", 229.31, 24.32),
        ("ObjectiveFS (warm memory cache)", 1010.25, 107.13),
    ],
}
"""Of SMALL_FILES_SOURCE: MB/s, and against the first."""

MIXED: dict[str, list[tuple[str, float, float, float, float, float]]] = {
    "GET": [
        ("Garage on SSD", 12.86, 0.9717, 0.9734, 1.2837, 1.5850),
        ("Garage on zdbfs", 12.13, 1.0204, 1.0151, 1.3539, 1.6286),
        ("MinIO on SSD", 23.81, 0.2042, 0.2011, 0.2597, 0.3297),
        ("MinIO on zdbfs, 4,290 errors", 20.62, 0.3080, 0.1548, 0.8990, 1.8344),
    ],
    "STAT": [
        ("Garage on SSD", 8.53, 0.0248, 0.0190, 0.0542, 0.1043),
        ("Garage on zdbfs", 8.10, 0.0266, 0.0207, 0.0556, 0.1271),
        ("MinIO on SSD", 15.87, 0.0295, 0.0268, 0.0471, 0.0779),
        ("MinIO on zdbfs, 2,842 errors", 13.69, 0.0678, 0.0517, 0.1466, 0.3081),
    ],
    "PUT": [
        ("Garage on SSD", 4.30, 1.6847, 1.6561, 2.1358, 2.4219),
        ("Garage on zdbfs", 4.06, 1.7762, 1.7578, 2.2361, 2.5902),
        ("MinIO on SSD", 7.95, 1.8215, 1.8084, 2.0334, 2.1899),
        ("MinIO on zdbfs", 6.82, 1.9558, 2.0133, 2.5303, 2.8181),
    ],
    "DELETE": [
        ("Garage on SSD", 2.86, 0.0292, 0.0239, 0.0625, 0.1100),
        ("Garage on zdbfs", 2.70, 0.0318, 0.0272, 0.0700, 0.1030),
        ("MinIO on SSD", 5.29, 0.0312, 0.0298, 0.0481, 0.0760),
        ("MinIO on zdbfs", 4.57, 0.1723, 0.0919, 0.5496, 1.1003),
    ],
}
"""Of MIXED_SOURCE: obj/s, seconds: mean, 50 %, 90 %, 99 %."""

BATCHES: dict[int, tuple[float, float]] = {KB: (0.0952, 0.1006), MB: (0.3662, 0.3698), 100 * MB: (12.161, 17.081)}
"""Of BATCHES_SOURCE: seconds for ten files, elastic and bursting."""

THREADS: dict[int, dict[int, float]] = {
    500 * KB: {4: 55, 8: 80, 16: 84, 32: 84, 64: 79, 128: 81, 1024: 87},
    MB: {1: 23, 2: 43, 3: 61, 4: 77, 5: 86, 6: 93, 7: 105, 8: 104, 9: 105, 10: 103},
    GB: {1: 102, 2: 103, 3: 106, 4: 104},
}
"""Of THREADS_SOURCE: combined MB/s by size and threads."""
