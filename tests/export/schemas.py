# SPDX-License-Identifier: Apache-2.0
"""What is printed, held against its JSON schema."""


def closed(schema):
    """The same schema, in which objects have no other keys than those that it describes."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(part) for key, part in schema.items()}
    if made.get("type") == "object" and "properties" in made:
        made["additionalProperties"] = False
    return made


def errors(validator, report):
    return [f"{list(error.absolute_path)}: {error.message}"[:300]
            for error in validator.iter_errors(report)]
