# SPDX-License-Identifier: Apache-2.0
"""`pumice inspect --graph`: the operator calls of a file as a graph that Model Explorer opens.

The form is that of its adapters (github.com/google-ai-edge/model-explorer, graph_builder.py): nodes with a namespace,
attributes and incoming edges. Layers of the user's model are its namespaces; weights are attributes.
"""

from __future__ import annotations

import json
from typing import Any

from pumice.runtime.profile import layer_of


def graph(facts: dict[str, Any], label: str) -> str:
    """The JSON of a file that pumice.inspect describes: one graph for each method."""
    return json.dumps({"label": label, "graphs": [_method(method) for method in facts["methods"]]})


def _method(method: dict[str, Any]) -> dict[str, Any]:
    values, made_by, nodes = method["plan"]["values"], dict[int, tuple[str, str]](), list[dict[str, Any]]()
    for index, value in enumerate(values):
        if value["kind"] in ("input", "state"):
            made_by[index] = f"{value['kind']} {index}", "0"
            nodes.append(_node(f"{value['kind']} {index}", value["name"] or value["kind"], "", {"type": _type(value)}))
    for number, op in enumerate(method["ops"]):
        weights = [values[index] for index in op["reads"] if values[index]["kind"] == "constant"]
        attributes = {"call": str(number), "source": op["source"]}
        attributes |= {f"weight {value['name']}": f"{_type(value)}, {value['bytes']} bytes" for value in weights}
        node = _node(f"call {number}", op["name"], layer_of(op["source"]).replace(".", "/"), attributes)
        node["incomingEdges"] = [
            _edge(*made_by[index], place) for place, index in enumerate(op["reads"]) if index in made_by
        ]
        node["outputsMetadata"] = [
            {"id": str(place), "attrs": _attributes({"type": _type(values[index])})}
            for place, index in enumerate(op["writes"])
        ]
        made_by |= {index: (node["id"], str(place)) for place, index in enumerate(op["writes"])}
        nodes.append(node)
    for index, value in enumerate(values):
        if value["kind"] == "output":
            node = _node(f"output {index}", value["name"] or "output", "", {"type": _type(value)})
            node["incomingEdges"] = [_edge(*made_by[index], 0)] if index in made_by else []
            nodes.append(node)
    return {"id": method["name"], "nodes": nodes}


def _node(name: str, label: str, namespace: str, attributes: dict[str, str]) -> dict[str, Any]:
    return {"id": name, "label": label, "namespace": namespace, "attrs": _attributes(attributes)}


def _attributes(attributes: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in attributes.items()]


def _edge(source: str, output: str, place: int) -> dict[str, str]:
    return {"sourceNodeId": source, "sourceNodeOutputId": output, "targetNodeInputId": str(place)}


def _type(value: dict[str, Any]) -> str:
    return f"{value['dtype']}{value['dims']}"
