"""Sentences for the person at the terminal: kept out of the output, and in the words of options."""

import re
import sys
from collections.abc import Mapping

from popf.formatting import with_options


def say(sentence: str) -> None:
    """Print a sentence on the error stream, where it does not get into the output.

    Examples
    --------
    >>> from popf.cli.messages import say
    >>> say("note: nobody rises.")  # on standard error
    """
    print(f"popf: {sentence}", file=sys.stderr)


def in_words_of_options(sentence: str, options: Mapping[str, str]) -> str:
    """Turn the names of parameters in an error of the library into options, as one types them.

    Parameters
    ----------
    sentence : str
    options : dict of str to str
        For each parameter its option. What stands in quotes or in a path is left as it is.

    Examples
    --------
    >>> from popf.cli.messages import in_words_of_options
    >>> options = {name: "--" + name.replace("_", "-") for name in ("encode", "train_size", "runs")}
    >>> in_words_of_options("pass encode='onehot'", options)
    'pass --encode onehot'
    >>> in_words_of_options("train_size=2.0 is no share of 'train_size.csv'", options)
    "--train-size 2.0 is no share of 'train_size.csv'"
    >>> in_words_of_options("runs is 0; it must be at least 1", options)
    '--runs is 0; it must be at least 1'
    """
    sentence = with_options(sentence, options)
    for name, option in options.items():
        start = rf"(?<![\w'\"/\\.-]){name}"
        sentence = re.sub(rf"{start}='([\w.-]+)'", rf"{option} \1", sentence)
        sentence = re.sub(rf"{start}=(?=\S)", f"{option} ", sentence)
        if "_" in name:
            sentence = re.sub(rf"{start}(?![\w'\"/\\]|\.\w)", option, sentence)
        else:  # a word of the language, too
            sentence = re.sub(rf"^{name}(?= (is|must|was)\b)", option, sentence)
    return sentence
