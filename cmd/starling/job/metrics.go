package job

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/tracking"
)

// ExportFormats are those of other tools.
var ExportFormats = []string{"csv", "prometheus", "trainer-state", "tensorboard"}

// ExportMetricsCommand is starling job export-metrics.
func ExportMetricsCommand(c *terminal.Console) *cobra.Command {
	var format, file string
	cmd := &cobra.Command{
		Use:   "export-metrics OUT",
		Short: "Write the metrics of a run for other tools",
		Long: `Write the metrics in the output folder of a run in the form of another tool: csv, prometheus (its text format,
the latest numbers), trainer-state (the trainer_state.json of Hugging Face's Trainer) or tensorboard (a folder of event
files). Standard output takes all but tensorboard. A job writes a folder of TensorBoard while it runs with
tracking.tensorboard.

With -o json, which needs --file: {"format","file","metrics"}.`,
		Example: `  starling job export-metrics out/quickstart --format csv > metrics.csv
  starling job export-metrics out/quickstart --format tensorboard --file tb
  starling job export-metrics out/quickstart --format prometheus`,
		Args: usage.Exactly("OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.Form.Machine() && file == "" {
				return usage.Error(cmd, fmt.Errorf("-o %s needs --file: without it, standard output carries the metrics in their "+
					"own form", c.Form))
			}
			path := filepath.Join(args[0], "metrics.jsonl")
			raw, err := os.ReadFile(path)
			if err != nil {
				return terminal.WithExit(&terminal.Problem{Code: "NOT_A_RUN", What: "there are no metrics in " + args[0],
					Why: err.Error(), Fix: "give the output folder of `starling train`"}, terminal.ExitNotFound)
			}
			metrics, err := tracking.Read(bytes.NewReader(raw))
			if err != nil {
				return terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot read " + path, Why: err.Error(),
					Fix: "see whether another program wrote to it"}, terminal.ExitNotFound)
			}
			if format == "tensorboard" {
				err = exportBoard(cmd, file, path, metrics)
			} else {
				err = exportText(cmd, format, file, args[0], metrics)
			}
			if err != nil || !c.Form.Machine() {
				return err
			}
			return c.Form.Print(os.Stdout, terminal.One(map[string]any{"format": format, "file": file,
				"metrics": len(metrics)}, file))
		},
	}
	cmd.Flags().StringVar(&format, "format", ExportFormats[0], strings.Join(ExportFormats, ", "))
	cmd.Flags().StringVar(&file, "file", "", "file, or folder of TensorBoard, to write; \"\" is standard output")
	return cmd
}

// exportText writes the metrics of a run to a file, or to standard output.
func exportText(cmd *cobra.Command, format, file, run string, metrics []api.Metric) (err error) {
	var text bytes.Buffer
	switch format {
	case "csv":
		err = api.WriteCSV(&text, metrics)
	case "prometheus":
		err = tracking.Prometheus(&text, filepath.Base(filepath.Clean(run)), metrics)
	case "trainer-state":
		err = tracking.TrainerState(&text, metrics)
	default:
		return usage.Error(cmd, fmt.Errorf("there is no --format %q: use one of %s", format,
			strings.Join(ExportFormats, ", ")))
	}
	if err != nil {
		return err
	}
	if file == "" {
		_, err = os.Stdout.Write(text.Bytes())
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// exportBoard writes an event file. When a metric was measured follows from when the file was written last and how long
// the rounds took.
func exportBoard(cmd *cobra.Command, dir, path string, metrics []api.Metric) error {
	if dir == "" {
		return usage.Error(cmd, errors.New("--format tensorboard needs --file, a folder"))
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	total := 0.0
	for _, m := range metrics {
		total += m.Seconds
	}
	at := info.ModTime().Add(-time.Duration(total * float64(time.Second)))
	f, err := tracking.CreateEvents(dir, at)
	if err != nil {
		return err
	}
	events, err := tracking.NewEvents(f, 0, at)
	for _, m := range metrics {
		if err != nil {
			break
		}
		at = at.Add(time.Duration(m.Seconds * float64(time.Second)))
		err = events.Add(m, at)
	}
	return errors.Join(err, f.Close())
}
