"""The first sitting on a GPU, the most valuable facts first; each part has its limit. scripts/gpu_check.sh --only
first."""
import families
import place as places
import ranks
import speed
import steps
import training

# part: (its seconds at most, what runs). None: the rest, less the limits of the later parts.
PARTS = {"machine": (20, places.machine), "contact": (40, families.contact), "learns": (40, training.learns),
         "steps": (80, steps.steps_8b), "kernels": (70, speed.kernels), "models": (100, steps.models),
         "families": (60, families.families), "cudnn": (60, families.cudnn), "curves": (60, training.curves),
         "rest": (None, steps.rest),
         "two_ranks": (20, ranks.two_ranks)}  # last: ranks that share a GPU are the least likely to work
