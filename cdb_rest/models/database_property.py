"""Facts about the data that are fixed when the database is made."""

from django.db import models

from cdb_rest.domain.names import NAME_LENGTH, TEXT_LENGTH


class DatabaseProperty(models.Model):
    """A named value. `iov_mode` is the mode (CDB_IOV_MODE) in which the ends of the stored intervals are written."""

    name = models.CharField(max_length=NAME_LENGTH, primary_key=True)
    value = models.CharField(max_length=TEXT_LENGTH)

    class Meta:
        db_table = "DatabaseProperty"

    def __str__(self) -> str:
        return self.name
