"""Types of command line arguments."""

import argparse


def words(text):
    return list(dict.fromkeys(word for word in text.split(",") if word))


def positive(text):
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def positive_float(text):
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def numbers(text, number=positive):
    values = [number(word) for word in words(text)]
    if not values:
        raise argparse.ArgumentTypeError("an empty list")
    return values


def choices(text, allowed):
    by_lower = {name.lower(): name for name in allowed}
    chosen = []
    for word in words(text):
        if word.lower() not in by_lower:
            raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(allowed)}")
        chosen.append(by_lower[word.lower()])
    if not chosen:
        raise argparse.ArgumentTypeError("an empty list")
    return chosen
