"""Access rules, tokens of this service, revoked tokens of other issuers, and the log of their changes."""

from django.db import models
from django.db.models.functions import Now

from cdb_rest.rules.access import ANY, Role
from cdb_rest.rules.names import COMMENT_LENGTH, NAME_LENGTH, TEXT_LENGTH

ROLES = [(str(role), str(role).capitalize()) for role in Role]


class RuleKind(models.TextChoices):
    """What a rule applies to."""

    CLAIM = "claim"  # a token (JWT) of another issuer, or a login at it, by a claim
    TOKEN = "token"  # noqa: S105 -- a token of this service, by name
    USER = "user"  # a local account, or a user whom a proxy has logged in, by name
    GROUP = "group"  # the members of a group of local accounts
    NETWORK = "network"  # all clients in a network that are not identified in another way


class AccessRule(models.Model):
    """A rule: it gives a role, for some global tags and payload types, to those whom `kind` and `subject` describe.

    - `subject`: a regular expression that must match the whole value of the claim, or the whole name of the token, user
      or group. For networks, the address, such as 10.1.0.0/16.
    - `issuer`, `claim`: the name of the issuer in the file of issuers, and the claim; only for claims.
    - `identity`: the name of the clients in a network, for the change log; only for networks.
    - `tags`, `types`: regular expressions that must match the whole name. In a rule for a claim, ``{value}`` stands for the
      claim's value as text, and ``{pattern}`` for the value as a regular expression.
    """

    kind = models.CharField(max_length=10, choices=RuleKind)
    issuer = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    claim = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    subject = models.CharField(max_length=TEXT_LENGTH)
    identity = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    role = models.CharField(max_length=20, choices=ROLES)
    tags = models.CharField(max_length=TEXT_LENGTH, default=ANY)
    types = models.CharField(max_length=TEXT_LENGTH, default=ANY)
    comment = models.CharField(max_length=COMMENT_LENGTH, blank=True, default="")
    created = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "AccessRule"
        constraints = [
            models.CheckConstraint(
                name="access_rule_kind", condition=models.Q(kind__regex=f"^({'|'.join(RuleKind.values)})$")
            ),
            models.CheckConstraint(
                name="access_rule_role", condition=models.Q(role__regex=f"^({'|'.join(name for name, _ in ROLES)})$")
            ),
            models.UniqueConstraint(
                fields=["kind", "issuer", "claim", "subject", "identity", "role", "tags", "types"],
                name="access_rule_once",
            ),
        ]

    def __str__(self) -> str:
        return f"rule {self.id}"


class ApiToken(models.Model):
    """A token of this service, for a program. Only its SHA-256 digest is stored; access rules give it roles.

    `last_used` is accurate to about a minute. Requests that a replica serves do not set it. A token without `expires`
    does not expire. A token whose `revoked` is set is invalid forever.
    """

    name = models.CharField(max_length=NAME_LENGTH)
    digest = models.CharField(max_length=64)
    created = models.DateTimeField(db_default=Now(), editable=False)
    expires = models.DateTimeField(null=True)
    revoked = models.DateTimeField(null=True)
    last_used = models.DateTimeField(null=True)

    class Meta:
        db_table = "ApiToken"
        constraints = [
            models.UniqueConstraint(fields=["name"], name="api_token_name"),
            models.UniqueConstraint(fields=["digest"], name="api_token_digest"),
        ]

    def __str__(self) -> str:
        return self.name


class RevokedToken(models.Model):
    """Tokens (JWT) of another issuer that are not accepted any more, although they have not expired.

    `claim` is `jti` for a single token. It is `sub` for all tokens of a subject that were issued until `created`, plus
    the issuer's leeway, or that do not say when they were issued. `value` is the id of the token, or the subject, which
    is the value of the claim that the issuer's setting `subject` names.
    """

    issuer = models.CharField(max_length=NAME_LENGTH)
    claim = models.CharField(max_length=10, choices=[("jti", "jti"), ("sub", "sub")])
    value = models.CharField(max_length=TEXT_LENGTH)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "RevokedToken"
        constraints = [models.UniqueConstraint(fields=["issuer", "claim", "value"], name="revoked_token_once")]

    def __str__(self) -> str:
        return f"{self.claim} {self.value} of {self.issuer}"


class AccessChange(models.Model):
    """One change of rules or tokens: when, by whom, what. Rows are only added.

    `detail` is a document of the rule or token, without secrets.
    """

    created = models.DateTimeField(db_default=Now(), editable=False)
    actor = models.CharField(max_length=TEXT_LENGTH)
    action = models.CharField(max_length=20)
    detail = models.JSONField()

    class Meta:
        db_table = "AccessChange"
        verbose_name = "change of access"
        verbose_name_plural = "changes of access"
        indexes = [models.Index(fields=["created"], name="access_change_created")]

    def __str__(self) -> str:
        return f"{self.created}: {self.action} by {self.actor}"
