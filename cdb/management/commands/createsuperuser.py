"""manage.py createsuperuser"""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from cdb import env


class Command(createsuperuser.Command):
    help = (
        "Create an account for the admin. With --noinput, the password is read from the variable "
        "DJANGO_SUPERUSER_PASSWORD; the same rules apply to it as to a password that is typed in."
    )

    def handle(self, *arguments: Any, **options: Any) -> None:
        """Create the account as Django does, but also validate the password of --noinput.

        Raises `CommandError`, with a message of one line, if Django's password validators reject it.
        """
        password = env.superuser_password()
        if password and not options["interactive"]:
            model = get_user_model()
            account = model(
                **{
                    name: options[name]
                    for name in (model.USERNAME_FIELD, *model.REQUIRED_FIELDS)
                    if isinstance(options[name], str)
                }
            )
            try:
                validate_password(password, account)
            except ValidationError as error:
                raise CommandError(f"DJANGO_SUPERUSER_PASSWORD: {' '.join(error.messages)}") from error
        super().handle(*arguments, **options)
