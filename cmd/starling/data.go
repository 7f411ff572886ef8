package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/dataset"
)

func dataCommand(c *terminal.Console) *cobra.Command {
	return usage.Group("data", "Inspect, check and tokenize training data",
		`See what is in the data that jobs are trained on, find everything that is wrong with it before a job does,
and tokenize it once for many jobs. SOURCE is a file of data (text, jsonl, parquet, llmc-bin, nanogpt-bin, packed by
gzip or zstd), or a job file (.yaml), which stands for the files that its datasets name.

Jobs name their data by its path, so that there is nothing to register. add, list and rm are about the files of
examples that models are tuned with over OpenAI's interface (docs/api.md).`,
		dataInspectCommand(c), dataValidateCommand(c), dataStatsCommand(c), dataTokenizeCommand(c), dataAddCommand(c),
		dataListCommand(c), dataRemoveCommand(c))
}

// material is the data that a command is about.
type material struct {
	format, field string
	set           []string
}

func (m *material) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.format, "format", "", "text, jsonl, parquet, llmc-bin or nanogpt-bin (default: what the name of the "+
		"file tells)")
	f.StringVar(&m.field, "field", "", "field of a jsonl object, or column of a parquet file, that is the document "+
		"(default: text)")
	f.StringArrayVar(&m.set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
}

// files are those that the arguments stand for.
func (m *material) files(cmd *cobra.Command, args []string) ([]dataset.File, error) {
	if len(args) == 0 {
		return nil, usage.Error(cmd, errors.New("a SOURCE is needed: a file of data, or a job file"))
	}
	var all []dataset.File
	for _, path := range args {
		var files []dataset.File
		var err error
		if isJobFile(path) {
			var j *job.Job
			if j, err = jobfile.Load(path, m.set); err == nil {
				files, err = dataset.Of(j)
			}
		} else {
			files, err = dataset.Named([]string{path}, m.format, m.field)
		}
		if err != nil {
			return nil, dataError(err)
		}
		all = append(all, files...)
	}
	return all, nil
}

func isJobFile(path string) bool {
	return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")
}

// dataError gives the errors of data their codes.
func dataError(err error) error {
	problem := &terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot read the data", Why: err.Error(),
		Fix: "check the path and the permissions of the file"}
	code := terminal.ExitNotFound
	list, refused := errors.AsType[*job.ErrorList](err)
	switch {
	case refused:
		return terminal.WithExit(list, terminal.ExitUsage)
	case errors.Is(err, dataset.ErrFormat):
		problem.What, problem.Fix, code = err.Error(), "say --format text, jsonl, parquet, llmc-bin or nanogpt-bin",
			terminal.ExitUsage
		problem.Why = ""
	case errors.Is(err, dataset.ErrExists):
		problem.Code, problem.What, problem.Why, problem.Fix, code = "FILE_EXISTS", err.Error(), "nothing is overwritten",
			"give another --dir", terminal.ExitConflict
	case errors.Is(err, dataset.ErrTokenizer):
		problem.Code, problem.What, problem.Fix, code = "TOKENIZER_UNUSABLE", "the text cannot be tokenized so",
			"give the tokenizer.json of a byte-level BPE, a smaller --vocab-size, or more text", terminal.ExitUsage
	case errors.Is(err, dataset.ErrData):
		problem.Code, problem.What, problem.Fix, code = "DATA_INVALID", "the data cannot be used",
			"starling data validate says everything that is wrong with it", terminal.ExitUsage
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		return err
	}
	return terminal.WithExit(problem, code)
}

func dataInspectCommand(c *terminal.Console) *cobra.Command {
	var m material
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
			files, err := m.files(cmd, args)
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

func dataValidateCommand(c *terminal.Console) *cobra.Command {
	var m material
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
			files, err := m.files(cmd, args)
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
					func(f dataset.Fault) string { return fmt.Sprintf("%s:%d", f.File, f.Line) }))
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
		for _, g := range dataset.Grouped(v.Faults) {
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

func dataStatsCommand(c *terminal.Console) *cobra.Command {
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
			j, err := jobfile.Load(args[0], set)
			if err != nil {
				return err
			}
			s, err := dataset.Count(cmd.Context(), j)
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

func dataTokenizeCommand(c *terminal.Console) *cobra.Command {
	var m material
	var v dataset.Vocabulary
	var dir string
	cmd := &cobra.Command{
		Use:   "tokenize SOURCE... --dir DIR",
		Short: "Tokenize data once, for jobs to name",
		Long: `Write the tokens of data into DIR/tokens.bin, in the form of llm.c, and, with --vocab-size, the byte-level BPE
trained on it into DIR/tokenizer.json. A job that names both has the same corpus, and so the same identifier of its
data, as one that names the text; it begins without tokenizing. Nothing is overwritten. Paths of a job file start from
its folder.

With -o json: {"path","tokenizer","tokens","vocab_size","bytes","sha256","digest","job"}.`,
		Example: `  starling data tokenize corpus.jsonl --vocab-size 8192 --dir tokens
  starling data tokenize books/*.txt --tokenizer llama/tokenizer.json --dir tokens
  starling data tokenize examples/quickstart.yaml --dir tokens -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.Size < 0 || v.Size > 0 && v.File != "" || dir == "" {
				return usage.Error(cmd, errors.New("--dir is needed, and at most one of --tokenizer and --vocab-size"))
			}
			files, err := m.files(cmd, args)
			if err != nil {
				return err
			}
			made, err := dataset.Tokenize(cmd.Context(), files, v, filepath.Clean(dir))
			if err != nil {
				return dataError(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(made, made.Path))
			}
			_, err = fmt.Printf("%s: %d tokens of %d, %s\n\nin a job file:\n%s", made.Path, made.Tokens, made.Vocab,
				terminal.Bytes(uint64(made.Bytes)), made.Job)
			return err
		},
	}
	m.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&v.File, "tokenizer", "", "tokenizer.json to tokenize with (default: a token a byte)")
	f.IntVar(&v.Size, "vocab-size", 0, "train a tokenizer of so many tokens on the data")
	f.StringVar(&dir, "dir", "", "folder to write to; it is made if it is missing")
	return cmd
}

// keeping is a command about files of examples, which are kept at a server, or in a folder of data that one serves.
func keeping(cmd *cobra.Command, do func(cmd *cobra.Command, a *source.Client, args []string) error) *cobra.Command {
	var p source.Place
	var data string
	p.Server(cmd)
	cmd.Flags().StringVar(&data, "data", ".", "folder of data, as that of starling web --data, if no server is asked")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := p.Open(cmd, data)
		if err != nil {
			return err
		}
		defer a.Close()
		return do(cmd, a, args)
	}
	return cmd
}

func dataAddCommand(c *terminal.Console) *cobra.Command {
	return keeping(&cobra.Command{
		Use:   "add FILE",
		Short: "Keep a file of examples, for models to be tuned with",
		Long: `Keep a file of examples, of one conversation or prompt and completion a line, where jobs that tune models find
it: at a server, with --api, or in the folder of data of one. It is read to its end first, and refused with the line of
its first fault. The same bytes have the same identifier.

With -o json: {"id","object","bytes","created_at","filename","purpose","status"}.`,
		Example: `  starling data add chats.jsonl
  starling data add chats.jsonl --api http://127.0.0.1:7300 -o name`,
		Args: usage.Exactly("FILE"),
	}, func(cmd *cobra.Command, a *source.Client, args []string) error {
		f, err := os.Open(args[0])
		if err != nil {
			return dataError(err)
		}
		defer f.Close()
		kept, err := a.KeepFile(cmd.Context(), filepath.Base(args[0]), f)
		if err != nil {
			return source.Explain(err)
		}
		if c.Form.Machine() {
			return c.Form.Print(os.Stdout, terminal.One(kept, kept.ID))
		}
		_, err = fmt.Printf("%s  %s, %s\n", kept.ID, kept.Filename, terminal.Bytes(uint64(kept.Bytes)))
		return err
	})
}

func dataListCommand(c *terminal.Console) *cobra.Command {
	return keeping(&cobra.Command{
		Use:   "list",
		Short: "List the files of examples that are kept",
		Long: `List the files of examples that a server keeps, or that are kept in a folder of data, the latest first.

With -o json: {"files":[{"id","object","bytes","created_at","filename","purpose","status"}]}.`,
		Example: `  starling data list
  starling data list --api http://127.0.0.1:7300 -o name`,
		Args: usage.Exactly(),
	}, func(cmd *cobra.Command, a *source.Client, _ []string) error {
		files, err := a.KeptFiles(cmd.Context())
		if err != nil {
			return source.Explain(err)
		}
		if c.Form.Machine() {
			return c.Form.Print(os.Stdout, terminal.Items("files", files, func(f api.FileObject) string { return f.ID }))
		}
		w := terminal.NewColumns(os.Stdout, c.Form, "FILE", "NAME", "BYTES", "KEPT SINCE")
		for _, f := range files {
			w.Row(f.ID, f.Filename, terminal.Bytes(uint64(f.Bytes)), terminal.WhenUnix(f.CreatedAt))
		}
		return w.Flush()
	})
}

func dataRemoveCommand(c *terminal.Console) *cobra.Command {
	return keeping(&cobra.Command{
		Use:   "rm FILE",
		Short: "Remove a file of examples that is kept",
		Long: `Remove a file of examples, by its identifier, with what was made of it for jobs. Jobs that begin later do
not find it.

With -o json: {"id","object","deleted"}.`,
		Example: `  starling data rm file-0123456789abcdef01234567
  starling data rm file-0123456789abcdef01234567 --api http://127.0.0.1:7300`,
		Args: usage.Exactly("FILE"),
	}, func(cmd *cobra.Command, a *source.Client, args []string) error {
		if err := a.RemoveFile(cmd.Context(), args[0]); err != nil {
			return source.Explain(err)
		}
		if c.Form.Machine() {
			return c.Form.Print(os.Stdout, terminal.One(api.FileDeleted{ID: args[0], Object: "file", Deleted: true}, args[0]))
		}
		_, err := fmt.Println("removed " + args[0])
		return err
	})
}
