from adjudge.measurement.disagreement import Disagreement as Disagreement
from adjudge.measurement.disagreement import DisagreementSort as DisagreementSort
from adjudge.measurement.measure import make_measurement as make_measurement
from adjudge.measurement.measurement import Measurement as Measurement
from adjudge.measurement.measurement import MeasurementKind as MeasurementKind
from adjudge.measurement.rate import Sampling as Sampling
from adjudge.measurement.verdict_file import measure_file as measure_file
