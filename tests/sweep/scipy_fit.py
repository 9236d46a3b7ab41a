"""Prints scipy_fit.json, with which scaling_law_test.cc compares: runs with noise, the objective of arXiv 2203.15556 at
some laws, and the law that scipy finds. Independent of the program: logsumexp and BFGS are scipy's, in float64, and N
and D are not centred. Made with Python 3.11.7, numpy 2.4.6 and scipy 1.17.1 (scripts/dev/requirements-interop.txt)."""
import itertools
import json

import numpy as np
from scipy.optimize import minimize
from scipy.special import huber, logsumexp

DELTA = 1e-3
TRUTH = [1.817, 482.0, 2085.0, 0.348, 0.366]  # E, A, B, alpha, beta: epoch-research/analyzing-chinchilla


def law(p, N, D):
    E, A, B, alpha, beta = p
    return E + A / N**alpha + B / D**beta


def terms(x, N, D):
    a, b, e, alpha, beta = x
    return np.stack([a - alpha * np.log(N), b - beta * np.log(D), np.full_like(N, e)])


def objective(x, N, D, L):
    return huber(DELTA, logsumexp(terms(x, N, D), axis=0) - np.log(L)).sum()


def gradient(x, N, D, L):
    of = terms(x, N, D)
    sums = logsumexp(of, axis=0)
    g = np.clip(sums - np.log(L), -DELTA, DELTA) * np.exp(of - sums)
    return np.array([g[0].sum(), g[1].sum(), g[2].sum(), -(g[0] * np.log(N)).sum(), -(g[1] * np.log(D)).sum()])


def variables(p):
    return [np.log(p[1]), np.log(p[2]), np.log(p[0]), p[3], p[4]]


def main():
    rng = np.random.default_rng(7)
    N, D = np.array(list(itertools.product([1e6, 4e6, 2e7, 1e8], [5.0, 20.0, 60.0, 200.0]))).T
    D = D * N
    L = law(TRUTH, N, D) * np.exp(0.004 * rng.standard_normal(len(N)))
    best = None
    for a, b, e, alpha, beta in itertools.product((3, 6, 9), (4, 8, 12), (0, 0.5), (0.2, 0.4, 0.7), (0.2, 0.4, 0.7)):
        x = minimize(objective, [a, b, e, alpha, beta], (N, D, L), "BFGS", gradient, options={"gtol": 1e-10}).x
        # Without centring BFGS stops early in the valley; the simplex goes on.
        if best is None or objective(x, N, D, L) < 1.2 * objective(best, N, D, L):
            for _ in range(3):
                x = minimize(objective, x, (N, D, L), "Nelder-Mead",
                             options={"xatol": 1e-12, "fatol": 1e-18, "maxiter": 20000, "maxfev": 20000}).x
        if best is None or objective(x, N, D, L) < objective(best, N, D, L):
            best = x
    a, b, e, alpha, beta = best
    laws = [TRUTH, [1.69, 406.4, 410.7, 0.339, 0.285], [np.exp(e), np.exp(a), np.exp(b), alpha, beta]]
    print(json.dumps({
        "points": [list(point) for point in zip(N, D, L)],
        "laws": [{"law": [float(v) for v in p], "objective": float(objective(variables(p), N, D, L))} for p in laws],
    }, indent=1))


main()
