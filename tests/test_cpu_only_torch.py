"""FA601's command: which CUDA torch it names for a file beside a torch without CUDA."""

from __future__ import annotations

import pytest
from support.contexts import context, distribution, environment, lost, releases, torch

from fa_forensics.rules.libs import cpu_only_torch

CPU = environment(
    torch=torch(version="2.13.0+cpu", release="2.13.0", cuda=None, has_cuda_libs=False)
)


@pytest.mark.parametrize(
    ("requires", "links", "named"),
    [
        ((), ("2.11.0", "2.12.0", "2.13.0"), "2.13.0"),  # the one that is here serves it
        ((), ("2.10.0", "2.11.0"), "2.11.0"),
        (("torch==2.11.0",), ("2.11.0", "2.13.0"), "2.11.0"),  # its own pin goes first
    ],
)
def test_the_release_that_is_here_is_kept_where_the_file_links_with_it(
    requires: tuple[str, ...], links: tuple[str, ...], named: str
) -> None:
    found = cpu_only_torch(
        context(
            environment=CPU,
            resolution=lost("libc10_cuda.so"),
            releases=releases(links_with=links, package_links=links, best="2.11.0", symbols=5),
            distribution=distribution("torchaudio", "2.11.0", *requires),
        )
    )
    assert found[0].finding.help[0].endswith(f'"torch=={named}"')
