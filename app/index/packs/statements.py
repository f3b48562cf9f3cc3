"""The statements of packs, built once at import."""

from __future__ import annotations

from sqlalchemy import delete, literal_column, select, update

from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.schema.tables import packs
from sluice_s3.app.index.sql.builder import columns, insertion, new_values, number
from sluice_s3.app.index.sql.transaction import Statement

ADD_PACK = insertion(packs)
PACKS_OF = Statement(
    select(*columns(packs, Pack._fields)).where(packs.c.incarnation == number("who")).order_by(packs.c.id)
)
SEAL_PACK = Statement(update(packs).values(**new_values(packs, "sealed", "size")).where(packs.c.id == number("pack")))
ADD_DEAD = Statement(update(packs).values(dead=packs.c.dead + number("more")).where(packs.c.id == number("pack")))
PACK = Statement(select(*columns(packs, Pack._fields)).where(packs.c.id == number("pack")))
ALL_PACKS = Statement(select(*columns(packs, Pack._fields)).order_by(packs.c.id))
SET_DEAD = Statement(
    update(packs)
    .values(**new_values(packs, "dead", "sealed"))
    .where(
        packs.c.id == number("pack"),
        packs.c.dead == number("seen"),
        packs.c.sealed.in_((literal_column("1"), literal_column("3"))),
    )
    .returning(packs.c.id)
)
RETIRE_PACK = Statement(
    update(packs)
    .values(**new_values(packs, "sealed"))
    .where(
        packs.c.id == number("pack"),
        packs.c.sealed == literal_column("1"),
        packs.c.size - packs.c.dead <= number("overhead"),
    )
    .returning(packs.c.id)
)
REMOVE_PACK = Statement(delete(packs).where(packs.c.id == number("pack")))
