# SPDX-License-Identifier: Apache-2.0
"""The models that Extra-P makes of a file with JSON lines. A Python with extrap runs it (HEADRACE_EXTRAP).

usage: extrap_models.py SPACE FILE >models.json         SPACE: default, negative, no-logs
"""

import json
import sys
import warnings

from extrap.entities.coordinate import Coordinate
from extrap.entities.measurement import Measurement
from extrap.modelers.multi_parameter.multi_parameter_modeler import MultiParameterModeler
from extrap.modelers.single_parameter.basic import SingleParameterModeler


def series_of(path):
    """{region: [(point, values)]}"""
    series = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            points = series.setdefault(row["callpath"], {})
            points.setdefault(tuple(row["params"].values()), []).append(row["value"])
    return {region: list(points.items()) for region, points in series.items()}


def exponents(term):
    power = log = 0
    for part in term.simple_terms:
        if part.term_type == "polynomial":
            power = float(part.exponent)
        else:
            log = float(part.exponent)
    return power, log


def describe(hypothesis):
    """What the tests compare: coefficients, and the exponents of each product by the number of the parameter."""
    function = hypothesis.function
    coefficients, products = [float(function.constant_coefficient)], []
    for term in getattr(function, "compound_terms", ()):
        pairs = getattr(term, "parameter_term_pairs", None)
        coefficients.append(float(term.coefficient))
        products.append([[i, *exponents(part)] for i, part in (pairs if pairs else [(0, term)])])
    return {"coefficients": coefficients, "products": products, "adjusted_r2": float(hypothesis.AR2),
            "smape": float(hypothesis.SMAPE), "rss": float(hypothesis.RSS)}


def modeler_of(space, dimensions):
    modeler = SingleParameterModeler() if dimensions == 1 else MultiParameterModeler()
    single = modeler if dimensions == 1 else modeler.single_parameter_modeler
    if space == "negative":
        single.allow_negative_exponents = True
    elif space == "no-logs":
        single.allow_log_terms = False
    return modeler


def main(space, path):
    warnings.filterwarnings("ignore")
    models = {}
    for region, points in series_of(path).items():
        measurements = [Measurement(Coordinate(*point), None, None, values) for point, values in points]
        models[region] = describe(modeler_of(space, len(points[0][0])).model([measurements])[0].hypothesis)
    json.dump(models, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
