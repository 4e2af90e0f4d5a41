"""An import contract that import-linter does not have: everything outside the room that may be imported is listed.

`forbidden` contracts name what is not wanted and forget what nobody thought of; the core wants the opposite.
"""

from typing import cast

from grimp import DetailedImport, ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.domain.imports import Module


class AllowListContract(Contract):
    """`source_modules` import, besides themselves, only the packages in `allowed`; `doors` are left out."""

    type_name = "allow_list"

    source_modules = fields.SetField(subfield=fields.ModuleField())
    allowed = fields.SetField(subfield=fields.StringField())
    doors = fields.SetField(subfield=fields.ModuleField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        allowed = cast(set[str], self.allowed)
        doors = {module.name for module in cast(set[Module] | None, self.doors) or ()}
        broken: list[DetailedImport] = []
        for source in sorted(module.name for module in cast(set[Module], self.source_modules)):
            for importer in sorted({source, *graph.find_descendants(source)} - doors):
                for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                    if imported.partition(".")[0] not in allowed | {source}:
                        broken += graph.get_import_details(importer=importer, imported=imported)
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for detail in check.metadata["broken"]:
            output.print_error(
                f"{detail['importer']} -> {detail['imported']} (l.{detail['line_number']}) is not in the list of allowed imports"
            )
