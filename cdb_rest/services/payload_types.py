"""Creating and deleting payload types."""

from cdb_rest.domain.errors import PayloadTypeInUseError, PayloadTypeNotFoundError
from cdb_rest.models import PayloadType
from cdb_rest.services.transactions import write


@write
def create_payload_type(*, name: str, description: str = "") -> PayloadType:
    """Create a payload type. Raises `NameTakenError`, by way of the constraint."""
    return PayloadType.objects.create(name=name, description=description)


@write
def delete_payload_type(*, name: str) -> None:
    """Delete a payload type. Raises `PayloadTypeNotFoundError`, or `PayloadTypeInUseError` while a list has it."""
    payload_type = PayloadType.objects.filter(name=name).select_for_update().first()
    if payload_type is None:
        raise PayloadTypeNotFoundError(name)
    if payload_type.payload_lists.exists():
        raise PayloadTypeInUseError(f"Payload type {name} is in use by payload lists.")
    payload_type.delete()
