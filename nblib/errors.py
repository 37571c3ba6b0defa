"""The base class of the study's errors: what a user can mend, in one sentence."""


class StudyError(ValueError):
    """Bad input, a missing file or service, or an impossible request; the message names what, where and the remedy.

    The command line shows the message alone, without a traceback.
    """
