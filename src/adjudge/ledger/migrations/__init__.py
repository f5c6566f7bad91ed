"""The steps by which an upgrade brings the tables beside a ledger to the form of this version, read by Alembic."""
