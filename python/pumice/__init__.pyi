# SPDX-License-Identifier: Apache-2.0
from pumice.dynamo.compiler import compile as compile
from pumice.dynamo.options import CompileOptions as CompileOptions
from pumice.dynamo.report_of_graphs import CompileReport as CompileReport
from pumice.errors import CancelledError as CancelledError
from pumice.errors import DeviceError as DeviceError
from pumice.errors import Error as Error
from pumice.errors import InvalidFileError as InvalidFileError
from pumice.errors import InvalidInputError as InvalidInputError
from pumice.errors import UnsupportedError as UnsupportedError
from pumice.exporter import export as export
from pumice.lowering.options import ExportOptions as ExportOptions
from pumice.lowering.program import Program as Program
from pumice.quantizer import quantize as quantize
from pumice.runtime.devices import Device as Device
from pumice.runtime.devices import devices as devices
from pumice.runtime.devices import why_no_devices as why_no_devices
from pumice.runtime.profile import ProfileRow as ProfileRow
from pumice.runtime.session import Session as Session
from pumice.runtime.session import check as check
from pumice.runtime.session import inspect as inspect
from pumice.runtime.session import load as load
from pumice.runtime.tensor_spec import TensorSpec as TensorSpec

__version__: str
