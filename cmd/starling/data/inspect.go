package data

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/node/dataset/fault"
)

func inspectCommand(c *terminal.Console) *cobra.Command {
	var m dataSource
	cmd := &cobra.Command{
		Use:   "inspect SOURCE...",
		Short: "Show what is in files of data",
		Long: `Read files of data to their ends and say what is in each: documents and their sizes, those that are empty,
repeated or no valid UTF-8, the fields of jsonl objects and the text columns of parquet, the beginning of the first
document, and how many faults there are, which starling data validate lists.

With -o json: {"files":[{"name","format","field","bytes","sha256","unpacked_bytes","documents","empty","text_bytes",
"longest_bytes","repeated","not_utf8","tokens","largest_token","beginning","fields":[{"name","texts","objects"}],
"faults":[{"file","line","why"}],"more_faults"}]}, of the faults of a file the first ten.`,
		Example: `  starling data inspect corpus.jsonl.zst books/*.txt
  starling data inspect examples/quickstart.yaml -o json
  starling data inspect dump.jsonl --field body`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := m.files(c, cmd, args)
			if err != nil {
				return err
			}
			reports, err := dataset.Inspect(cmd.Context(), files, 10)
			if err != nil {
				return dataError(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Items("files", reports, func(r dataset.Report) string { return r.Name }))
			}
			return printReports(reports, c.Form)
		},
	}
	m.flags(cmd)
	return cmd
}

func printReports(reports []dataset.Report, f terminal.Form) error {
	w := terminal.NewColumns(os.Stdout, f, "FILE", "FORMAT", "BYTES", "DOCUMENTS", "LONGEST", "EMPTY", "REPEATED",
		"NOT UTF-8", "FAULTS", "+UNPACKED", "+FIELDS", "+SHA256", "+BEGINNING")
	for _, r := range reports {
		documents, longest := fmt.Sprint(r.Documents), terminal.Bytes(uint64(r.Longest))
		if r.Tokens > 0 {
			documents, longest = fmt.Sprintf("%d tokens", r.Tokens), fmt.Sprintf("up to id %d", r.Largest)
		}
		names := make([]string, len(r.Fields))
		for i, field := range r.Fields {
			names[i] = field.Name
		}
		w.Row(r.Name, r.Format, terminal.Bytes(uint64(r.Bytes)), documents, longest, r.Empty, r.Repeated, r.NotUTF8,
			len(r.Faults)+r.MoreFaults,
			terminal.Bytes(uint64(r.Unpacked)), strings.Join(names, " "), r.SHA256, r.Beginning)
	}
	return w.Flush()
}

func validateCommand(c *terminal.Console) *cobra.Command {
	var m dataSource
	var limit int
	cmd := &cobra.Command{
		Use:   "validate SOURCE...",
		Short: "Find everything that is wrong with data, line by line",
		Long: `Read files of data to their ends and list everything for which a job would refuse them, with its file and line:
lines that are no JSON object, objects without the field, files that cannot be unpacked or read. A job stops at the
first. Faults give exit code 12.

With -o json: {"valid","files","documents","faults":[{"file","line","why"}],"more_faults"}.`,
		Example: `  starling data validate corpus.jsonl
  starling data validate examples/quickstart.yaml
  starling data validate dump.jsonl --field body --limit 1000 -o jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage.Error(cmd, errors.New("--limit is at least 1"))
			}
			files, err := m.files(c, cmd, args)
			if err != nil {
				return err
			}
			reports, err := dataset.Inspect(cmd.Context(), files, limit)
			if err != nil {
				return dataError(err)
			}
			v := dataset.Judge(reports)
			if c.Form.Machine() {
				err = c.Form.Print(os.Stdout, terminal.List(v, v.Faults,
					func(f fault.Fault) string { return fmt.Sprintf("%s:%d", f.File, f.Line) }))
			} else {
				err = printVerdict(v, c.Form)
			}
			if !v.Valid {
				err = errors.Join(err, terminal.WithExit(&terminal.Problem{
					Code: "DATA_INVALID", What: "the data has " + terminal.Counted(len(v.Faults)+v.MoreFaults, "fault"),
					Fix: "fix or delete these lines, or name the text field with --field",
				}, terminal.ExitFindings))
			}
			return err
		},
	}
	m.flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "faults of a file that are listed, at most")
	return cmd
}

func printVerdict(v dataset.Verdict, f terminal.Form) error {
	if len(v.Faults) > 0 {
		w := terminal.NewColumns(os.Stdout, f, "FILE", "LINE", "WHY")
		for _, g := range fault.Grouped(v.Faults) {
			w.Row(g.File, g.Lines(), g.Why)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Println()
	}
	notListed := ""
	if v.MoreFaults > 0 {
		notListed = fmt.Sprintf(", of which --limit leaves out %d", v.MoreFaults)
	}
	_, err := fmt.Printf("%s with %s, %s%s\n", terminal.Counted(v.Files, "file"),
		terminal.Counted(v.Documents, "document"),
		terminal.Counted(len(v.Faults)+v.MoreFaults, "fault"), notListed)
	return err
}

func statsCommand(c *terminal.Console) *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "stats JOB.yaml",
		Short: "Count the tokens, sequences and steps of the data of a job",
		Long: `Tokenize the data of a job as the job would, and print the numbers of training tokens, held-out tokens,
sequences, inner steps of one epoch, epochs of the job and published shards, and the digest of the data in the work
specification.

With -o json: {"job","files","bytes","documents","text_bytes","vocab_size","train_tokens","val_tokens",
"bytes_per_token","sequences","sequences_per_step","steps_per_epoch","steps","epochs","shards","shard_bytes","digest",
"too_short","sequence_len"}.`,
		Example: `  starling data stats examples/quickstart.yaml
  starling data stats job.yaml --set sequence_len=512 -o json`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := jobfile.Load(cmd.Context(), c, args[0], set)
			if err != nil {
				return err
			}
			watch, done := jobfile.Tokenizing(cmd.Context(), c)
			s, err := dataset.Count(cmd.Context(), j, watch)
			done()
			if err != nil {
				return dataError(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(s, s.Digest))
			}
			return printStats(s)
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	return cmd
}

func printStats(s *dataset.Stats) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "data\t%d files, %s; %d documents, %s of text\n", s.Files, terminal.Bytes(uint64(s.Bytes)),
		s.Documents, terminal.Bytes(uint64(s.Text)))
	fmt.Fprintf(w, "tokens\t%d to train on, %d held out", s.TrainTokens, s.ValTokens)
	if s.BytesPerToken > 0 {
		fmt.Fprintf(w, "; %.2f bytes each", s.BytesPerToken)
	}
	fmt.Fprintf(w, "\nvocabulary\t%d\n", s.Vocab)
	if s.TooShort {
		fmt.Fprintf(w, "sequences\tnone: one needs %d tokens to train on\n", s.SequenceLength+1)
	} else {
		fmt.Fprintf(w, "sequences\t%d of %d tokens, %d a step\n", s.Sequences, s.SequenceLength, s.StepSequences)
		fmt.Fprintf(w, "one pass\t%.1f steps; the job takes %d, which is %.2f passes\n", s.EpochSteps, s.Steps, s.Epochs)
	}
	fmt.Fprintf(w, "published\t%d shards, %s\n", s.Shards, terminal.Bytes(uint64(s.ShardBytes)))
	fmt.Fprintf(w, "digest\t%s\n", s.Digest)
	return w.Flush()
}
