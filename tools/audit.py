"""Known weaknesses of the versions in a file of constraints, by pip-audit: `python tools/audit.py constraints.txt`.

Exit codes: 0 all packages were looked up, and nothing is known against them; 1 something is; 3 packages could not be looked up.
pip-audit itself says "no known vulnerabilities" where it got no answer at all.
"""

import json
import subprocess
import sys

UNKNOWN = 3  # exit code


def main() -> None:
    options = ["--requirement", sys.argv[1], "--no-deps", "--disable-pip", "--timeout", "20", "--format", "json"]
    done = subprocess.run([sys.executable, "-m", "pip_audit", *options], capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = done.stderr.strip().splitlines()[-1:] or ["no answer"]
        print(f"The advisory service cannot be used from here, so nothing is known: {last[0]}")
        sys.exit(UNKNOWN)
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    weak = [package for package in packages if package.get("vulns")]
    for package in weak:
        for one in package["vulns"]:
            mended = ", ".join(one["fix_versions"]) or "no version"
            print(f"{package['name']} {package['version']}: {one['id']}, mended in {mended}")
    if unknown:
        print(f"{len(unknown)} of {len(packages)} packages could not be looked up, so nothing is known of them: the advisory")
        print("service cannot be reached from here, or does not know them. Run `make audit` where it can be reached.")
    else:
        print(f"{len(packages)} packages were looked up, {len(weak)} have known weaknesses.")
    sys.exit(1 if weak else UNKNOWN if unknown else 0)


if __name__ == "__main__":
    main()
