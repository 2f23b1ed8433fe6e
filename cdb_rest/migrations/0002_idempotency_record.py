from django.db import migrations


class Migration(migrations.Migration):
    """Give the model of "KeptAnswer" its present name. The table keeps its name, so that nothing happens in the database."""

    dependencies = [("cdb_rest", "0001_conditions_database")]

    operations = [migrations.RenameModel("KeptAnswer", "IdempotencyRecord")]
