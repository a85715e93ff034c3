"""Label channels: likelihoods of observed labels given the true class (noise models)."""

from nbmodels.channels.annotators import Annotators
from nbmodels.channels.candidates import CandidateSets
from nbmodels.channels.external_evidence import ExternalEvidence
from nbmodels.channels.fixed import FixedTransition
from nbmodels.channels.labelling_functions import LabellingFunctions
from nbmodels.channels.labelling_rates import LabellingRates
from nbmodels.channels.neighbours import NeighbourVotes
from nbmodels.channels.one_coin_annotators import HierarchicalOneCoin, OneCoinAnnotators
from nbmodels.channels.ordered_annotators import OrderedAnnotators
from nbmodels.channels.pooled import HierarchicalTransition, PooledTransition
from nbmodels.channels.pooled_annotators import HierarchicalAnnotators, PooledAnnotators
from nbmodels.channels.symmetric import SymmetricTransition
from nbmodels.channels.transition import Transition
from nbmodels.channels.trusted import TrustedLabels

__all__ = [
    "Annotators",
    "CandidateSets",
    "ExternalEvidence",
    "FixedTransition",
    "HierarchicalAnnotators",
    "HierarchicalOneCoin",
    "HierarchicalTransition",
    "LabellingFunctions",
    "LabellingRates",
    "NeighbourVotes",
    "OneCoinAnnotators",
    "OrderedAnnotators",
    "PooledAnnotators",
    "PooledTransition",
    "SymmetricTransition",
    "Transition",
    "TrustedLabels",
]
