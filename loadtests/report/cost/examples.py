"""Prices of AWS in us-east-1 with their sources: examples, to be checked against the provider's own page."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_s3.loadtests.report.cost.prices import Price


@dataclass(frozen=True)
class Source:
    """Where a price was read, and of what day it is."""

    words: str
    link: str


EXAMPLES = {
    "gp3": Price(
        gb=0.08,
        iops=0.005,
        iops_provisioned=3000,
        iops_included=3000,
        mbps=0.04,
        mbps_provisioned=125,
        mbps_included=125,
    ),
    "efs": Price(gb=0.30, read=0.03, write=0.06),
    "s3": Price(gb=0.023, put=0.005, get=0.0004),
}
"""EBS gp3 as it comes, with 3,000 IOPS and 125 MB/s; EFS Standard with Elastic throughput; S3 Standard."""

SOURCES = {
    "gp3": [
        Source(
            "gp3: “gp2 vs gp3 Cost Comparison”, saisci.com, 4 February 2021, after AWS's page for N. Virginia",
            "https://www.saisci.com/aws/gp2-vs-gp3-cost-comparison-ebs-volumes/",
        )
    ],
    "efs": [
        Source(
            "EFS: “Amazon EFS Pricing”, FactualMinds, 13 June 2026, for us-east-1",
            "https://www.factualminds.com/blog/amazon-efs-pricing-throughput-modes-storage-classes/",
        )
    ],
    "s3": [
        Source(
            "S3, a GB: “Amazon S3 Pricing Explained”, CloudBurn, 13 March 2026, for N. Virginia",
            "https://cloudburn.io/blog/amazon-s3-pricing",
        ),
        Source(
            "S3, requests: “S3 request fees explained”, c3x.dev, without a date, read on 24 November 2026",
            "https://c3x.dev/blog/s3-request-fees-explained",
        ),
    ],
}
