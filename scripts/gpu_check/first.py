"""The first sitting on a GPU: what is worth most comes first, and each part has its limit. scripts/gpu_check.sh --only
first."""
import families
import place as places
import ranks
import speed
import steps
import training

SECONDS = 570
TWO_RANKS = 20  # seconds, at the end: ranks that share a GPU are the least likely to work
# part: its seconds at most; None: what is left, without that of the last part, which may take all
LIMITS = {"machine": 20, "contact": 40, "learns": 40, "steps": 80, "kernels": 70, "models": 100, "families": 60,
          "cudnn": 60, "curves": 60, "rest": None, "two_ranks": TWO_RANKS}
PARTS = {"machine": places.machine, "contact": families.contact, "learns": training.learns, "steps": steps.steps_8b,
         "kernels": speed.kernels, "models": steps.models, "families": families.families, "cudnn": families.cudnn,
         "curves": training.curves, "rest": steps.rest, "two_ranks": ranks.two_ranks}
