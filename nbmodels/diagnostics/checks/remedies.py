"""What may help against a failed check, in the estimators' parameters: the one place they stand."""

CROSS_FIT = 'training="cross_fit"'
SMALLER_WEIGHT = "training=Joint(weight=...) with a smaller weight"
FULL_COVARIANCE = 'covariance="full"'
SYMMETRIC_NOISE = 'noise="symmetric"'
FULL_NOISE = 'noise="full"'
NO_RESTARTS = "solver without restarts"
STUDENT = 'RobustNDA(dof="learn")'
OTHER_EMISSION = "another emission"
TRANSFORMED_COLUMN = "logarithms or ranks of that column"
PRESENCE = "presence in the place of counts"
SPLIT_CLASS = "a class split in two"
AUDIT = "an audit of some rows (audit_plan), whose labels then serve as trusted="
NEIGHBOURS = "NoisyNeighbours"
DEPENDENCE = 'dependence="auto"'
OWN_POOLING = 'pooling="own"'
TRUSTED = "some verified labels (trusted=)"
AUTO = "AutoNoisyClassifier"
