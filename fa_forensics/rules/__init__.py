"""All rules, by name. A new rule is one function and one row here."""

from fa_forensics.rules import abi, file, gpu, libs, link, python
from fa_forensics.rules.base import Rule

ALL_RULES: tuple[Rule, ...] = (
    file.wrong_machine,
    file.cut_short,
    file.damaged_tables,
    file.not_loadable,
    file.executable_stack,
    file.static_tls,
    file.no_section_headers,
    libs.broken_torch,
    libs.cpu_only_torch,
    libs.other_cuda_major,
    libs.second_cuda_runtime,
    libs.unmet_requirement,
    link.libraries_not_found,
    link.damaged_libraries,
    link.sibling_libraries,
    link.driver_libraries,
    link.versions,
    link.dependency_symbols,
    link.torch_symbols,
    link.unlinked_symbols,
    link.library_symbols,
    link.own_symbols,
    abi.flavour_mismatch,
    abi.mixed_flavours,
    abi.other_torch_minor,
    python.other_python,
    python.other_platform,
    python.python_symbols,
    python.module_name,
    gpu.damaged_container,
    gpu.witness_disagrees,
    gpu.witness_stopped,
)
