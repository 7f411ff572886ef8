// Package version says which build this is, and has the command that shows it. It compares no versions.
package version

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
)

// Command is starling version.
func Command(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, the numerics and the kernels in use",
		Long: `Show the version of the binary, the version of the numerics (programs run only on the version they were ` +
			`made for), and the kernels in use.`,
		Example: `  starling version
  starling version -o name`,
		Args: usage.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			version := Binary()
			v := map[string]any{"version": version, "numerics": kernel.Newest, "kernels": kernel.Active().String(),
				"platform": runtime.GOOS + "/" + runtime.GOARCH, "go": runtime.Version()}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(v, version))
			}
			fmt.Printf("starling %s, numerics %v, kernels %v, %v, %v\n", version, v["numerics"], v["kernels"], v["platform"],
				v["go"])
			return nil
		},
	}
}

// Binary is the version of this build: of a release, or the commit.
func Binary() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case !ok:
		return "development"
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	version := "development"
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			version += " " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			version += ", changed"
		}
	}
	return version
}
