"""The reasons for which the interface may refuse a request that its schemas allow, one per line."""

import re

import schemathesis

SHORT = r"(Insufficient resources: not enough [a-z0-9_, ]+ available|Quota exceeded: not enough [a-z0-9_, ]+ left of your quota)\."
STATE = r"Cannot (stop|restart|resize|read the stats of|open a terminal of|open a tunnel to) an instance that is \w+; it must be [\w ]+\."
NOT_LOST = r"Only an instance whose host was lost can be created again\."
SIZES = "(n_vcpus|mem_gib|disk_size_gib)"

# The refusals of create for a reason in its body.
REFUSED = [
    (400, r"flavor: \w+ is not available for resource_type vm"),
    (400, r"s3_\w+: S3 prefill is not supported by flavor \w+"),
    (400, r"s3_\w+: required when any s3_\* field is given"),
    (400, SIZES + r": must be at least \d+ for flavor \w+"),
    (400, r"(gpu_model: GPUs|volumes: volumes) are available for containers only"),
    (400, r"name: is already taken"),
    # The schema's pattern checks the line; only the parser checks the bytes of the key.
    (400, r"public_key: must be one OpenSSH public key line .*"),
    (400, r"public_key: an RSA key must have at least 1024 bits"),
    # Only the parser rejects a port number above 65535.
    (400, r"s3_endpoint_url: must be an http or https URL without credentials.*"),
]
PENDING = r"This webhook has too many pending deliveries; wait until some are done\."
INVITATION = (400, r"token: is not valid: it was used, replaced by a later one, or has expired; .*")
PASSWORD = (400, r"password: .*")
CREDENTIAL = (400, r"credential: (is not the result of a browser .*|answers a challenge .*)")

# The refusals of a share; the service of the test has no pages by name.
SHARED = [
    (400, r"users: (must be an e-mail address .*|must name at least one e-mail address|needs `access` to be \"users\")"),
    (400, r"expires_at: must be (an ISO 8601 time or date, such as 2027-01-01T00:00:00Z|in the future)"),
    (400, r"This service has no pages by name, so nothing can be shared: .*"),
]

# The refusals of a volume's use, on `volumes` at creation, on `volume` or `path` later.
USE = (
    r"(volumes|volume|path): (you have no (such volume|volume .*)"
    r"|.* (are within each other|is named twice|are on two hosts|is not ready yet|cannot be used\..*)"
    r"|.* is another user's: set `read_only` to true"
    r"|.* a volume has one instance that writes it, or any number that read it"
    r"|must (be an absolute path|be a directory|not be in) .*"
    r"|.* cannot be in a volume, because the flavor has the file .*"
    r"|is (attached at .*; detach it first|on another host than the instance)"
    r"|at most \d+ volumes|an instance has at most \d+ volumes"
    r"|volumes can be attached to containers only; this instance is a VM"
    r"|two volumes of this instance have this name; give the UUID)"
)
REFUSED.append((400, USE))
CHANGED = [
    (400, USE),
    (400, r"The engine of this instance attaches volumes at creation only, and detaches none\."),
    (400, r"Volumes can be attached to containers only; this instance is a VM\."),
    (400, r"Cannot change the volumes of an instance that is \w+; it must be [\w ]+\."),
    (400, r"An earlier change of this instance is still under way; try again shortly\."),
]

# The reasons for which an instance has no snapshot now.
SNAPSHOT = [
    (400, r"Cannot take a snapshot of an instance that is \w+; it must be running or exited\."),
    (400, r"Snapshots can be taken of containers only; this instance is a VM\."),
    (400, r"The disk of the instance is being restored; try again when that is done\."),
    (400, r"An earlier change of this instance is still under way; try again shortly\."),
]

# Operation -> (status, the whole text of the refusal). Field errors read "field: message".
REASONS = {
    "createInstance": REFUSED + [
        (422, SHORT),
        (422, r"This Idempotency-Key belongs to a request with another body\."),
    ],
    "updateInstance": [
        (400, r"name: is already taken"),
        (400, SIZES + r": VMs cannot be resized"),
        (400, r"disk_size_gib: a disk only grows; it has \d+ GiB"),
        (400, STATE),
        (400, r"An earlier change of this instance is still under way; try again shortly\."),
        (422, SHORT),
    ],
    "stopInstance": [(400, STATE)],
    "restartInstance": [(400, STATE), (422, SHORT)],
    "recreateInstance": [(400, NOT_LOST), (400, r"backup: this instance has no such backup")],
    "getRecreation": [(400, NOT_LOST)],
    "addPort": [
        (400, r"Ports can be opened on VMs only; this instance is a container\."),
        (400, r"port: at most 64 ports can be open"),
        (422, SHORT),
    ],
    "removePort": [
        (400, r"Ports can be opened on VMs only; this instance is a container\."),
        (400, r"port: port 22 \(SSH\) cannot be removed"),
    ],
    "createVolume": [
        (400, r"name: is already taken"),
        (400, r"cpu_tier: no host of this service .* keeps volumes"),
        (400, r"backup: you have no such backup that is done"),
        (422, SHORT),
        (422, r"This Idempotency-Key belongs to a request with another body\."),
    ],
    "updateVolume": [(400, r"name: is already taken")],
    "deleteVolume": [(400, r"Volume .* is attached to .*\.")],
    "shareVolume": [
        (400, r"user: (reads the volume already|is your own address|must be an e-mail address.*)"),
        (400, r".*a volume can have at most \d+ shares.*"),
    ],
    "attachVolume": CHANGED,
    "detachVolume": CHANGED,
    "createSnapshot": SNAPSHOT + [
        (400, r"name: is already taken"),
        (400, r"An instance has at most \d+ snapshots; delete one first\."),
        (422, SHORT),
        (422, r"This Idempotency-Key belongs to a request with another body\."),
    ],
    "estimateSnapshot": SNAPSHOT,
    "setSnapshotPlan": SNAPSHOT,
    "deleteSnapshot": [
        (400, r"The disk of the instance is being restored from snapshot .*; try again later\."),
    ],
    "restoreSnapshot": SNAPSHOT + [
        (400, r"Cannot restore an instance that is \w+; it must be exited\."),
        (400, r"The state of snapshot .* is \w+\."),
        (422, SHORT),
    ],
    "cloneSnapshot": REFUSED + [
        (400, r"The state of snapshot .* is \w+\."),
        (400, r"disk_size_gib: must be at least \d+, the disk of the snapshot"),
        (422, SHORT),
        (422, r"This Idempotency-Key belongs to a request with another body\."),
    ],
    "addBucket": [
        (400, r"endpoint: .*"),
        (400, r"(bucket|prefix): must have \d to 63 letters, digits, hyphens, dots or underscores"),
    ],
    "restoreBackup": [(422, r"This Idempotency-Key belongs to a request with another body\.")],
    "createBackup": [(400, r"bucket: you have no such bucket")],
    "createVolumeBackup": [(400, r"bucket: you have no such bucket")],
    "setBackupPlan": [(400, r"bucket: you have no such bucket")],
    "setVolumeBackupPlan": [(400, r"bucket: you have no such bucket")],
    "createKey": [
        # A format would exclude `never`; the field's description has both.
        (400, r"expires_at: must be an ISO 8601 time or date, such as 2027-01-01T00:00:00Z, or never"),
        (400, r"expires_at: must be in the future"),
        (400, r"non_field_errors: a user has at most 100 keys; revoke one first"),
    ],
    "estimateInstance": REFUSED,
    "openTerminal": [(400, STATE)],
    "openTunnel": [(400, STATE)],
    "createShare": SHARED,
    "updateShare": SHARED,
    "getUsage": [
        (400, r"(from|to): must be an ISO 8601 time or date, such as 2027-01-01T00:00:00Z"),
        (400, r"from: must not be after .*"),
    ],
    "saveSshKey": [
        (400, r"name: is the name of another saved key"),
        (400, r"public_key: must be one OpenSSH public key line .*"),
        (400, r"public_key: an RSA key must have at least 1024 bits"),
        (400, r"non_field_errors: a user has at most 50 saved keys; .*"),
    ],
    "createWebhook": [
        (400, r"url: must (be|begin with|have) .*"),
        (400, r"types: .* is no type of event; .*"),
        (400, r"non_field_errors: a user has at most 20 webhooks; .*"),
    ],
    "testWebhook": [(400, PENDING)],
    "redeliverWebhook": [(400, PENDING)],
    "getInvitation": [INVITATION],
    "acceptInvitation": [INVITATION, PASSWORD],
    "beginInvitedPasskey": [INVITATION],
    "acceptInvitationWithPasskey": [INVITATION],
    "signInWithPasskey": [CREDENTIAL],
    "signIn": [(400, r"The e-mail address or the password is wrong\.")],
    "fetchDeviceKey": [(400, r"The request is unknown, used or has expired; begin a new one\.")],
    "getStats": [
        (400, r"Live stats are available for containers only; this instance is a VM\."),
        (400, STATE),
    ],
}


def texts(body):
    """Returns the texts of a refusal, one per problem."""
    if isinstance(body.get("detail"), dict):
        return [body["detail"]["message"]]
    if isinstance(body.get("detail"), str):
        return [body["detail"]]
    return [f"{field}: {message}" for field, messages in body.items() for message in messages]


@schemathesis.check
def refused_for_a_known_reason(ctx, response, case):
    """Checks that a request that matches the schemas is refused for a listed reason only."""
    generated = case.meta.generation if case.meta else None
    if response.status_code not in (400, 422) or generated is None:
        return
    if not generated.mode.is_positive:
        return
    reasons = REASONS.get(case.operation.definition.raw.get("operationId"), [])
    for text in texts(response.json()):
        known = any(
            status == response.status_code and re.fullmatch(reason, text)
            for status, reason in reasons
        )
        assert known, f"refused for a reason that is neither in the schemas nor listed: {response.status_code} {text}"
