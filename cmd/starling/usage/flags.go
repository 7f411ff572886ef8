package usage

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/compute/kernel"
)

// ThreadsFlag is how many threads compute.
func ThreadsFlag(cmd *cobra.Command, threads *int) {
	cmd.Flags().IntVar(threads, "threads", kernel.Cores, "number of threads")
}

// ReadOrStdin reads a file of its user's, or standard input for "-".
func ReadOrStdin(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// MetricsFlag is where a process shows its metrics.
func MetricsFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "metrics", "", "host:port where Prometheus finds metrics, such as 127.0.0.1:9464 "+
		"(default: nowhere)")
}

// PrivateFlag is where validators answer clients.
func PrivateFlag(cmd *cobra.Command, private *bool) {
	cmd.Flags().BoolVar(private, "private", false, "answer clients on the loopback only; full nodes (starling "+
		"validator join --full) answer everybody")
}
