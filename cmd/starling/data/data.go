// Package data is starling data: commands that look at training data, tokenize it, and keep files of examples. Data is
// read in node/dataset.
package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/dataset"
)

// Command is starling data.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("data", "Inspect, check, tokenize and trade training data",
		`See what is in the data that jobs are trained on, find everything that is wrong with it before a job does,
and tokenize it once for many jobs. SOURCE is a file of data (text, jsonl, csv, parquet, llmc-bin, nanogpt-bin,
packed by gzip or zstd), or a job file (.yaml), which stands for the files that its datasets name.

Jobs name their data by its path, so that there is nothing to register. add, list and rm are about the files of
examples that models are tuned with over OpenAI's interface (docs/api.md). host sells the files of a folder page by page
on a network, and fetch buys pages.`,
		inspectCommand(c), validateCommand(c), statsCommand(c), tokenizeCommand(c), addCommand(c), listCommand(c),
		removeCommand(c), hostCommand(c), fetchCommand(c))
}

// dataSource is the data that a command is about.
type dataSource struct {
	format, field string
	set           []string
}

func (m *dataSource) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.format, "format", "", "text, jsonl, csv, parquet, llmc-bin or nanogpt-bin (default: what the name of "+
		"the file tells)")
	f.StringVar(&m.field, "field", "", "field of a jsonl object, or column of a csv or parquet file, that is the "+
		"document (default: text)")
	f.StringArrayVar(&m.set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
}

// files are those that the arguments stand for.
func (m *dataSource) files(c *terminal.Console, cmd *cobra.Command, args []string) ([]dataset.File, error) {
	if len(args) == 0 {
		return nil, usage.Error(cmd, errors.New("a SOURCE is needed: a file of data, or a job file"))
	}
	var all []dataset.File
	for _, path := range args {
		var files []dataset.File
		var err error
		if isJobFile(path) {
			var j *job.Job
			if j, err = jobfile.Load(cmd.Context(), c, path, m.set); err == nil {
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
	failed := &terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot read the data", Why: err.Error(),
		Fix: "check the path and the permissions of the file"}
	code := terminal.ExitNotFound
	list, refused := errors.AsType[*problem.ErrorList](err)
	switch {
	case refused:
		return terminal.WithExit(list, terminal.ExitUsage)
	case errors.Is(err, dataset.ErrFormat):
		failed.What, failed.Fix, code = err.Error(), "say --format text, jsonl, csv, parquet, llmc-bin or nanogpt-bin",
			terminal.ExitUsage
		failed.Why = ""
	case errors.Is(err, dataset.ErrExists):
		failed.Code, failed.What, failed.Why, failed.Fix, code = "FILE_EXISTS", err.Error(), "nothing is overwritten",
			"give another --dir", terminal.ExitConflict
	case errors.Is(err, dataset.ErrFull):
		failed.Code, failed.What, failed.Fix, code = problem.DiskFull, "the disk has no room for the tokens",
			"make room, or give a --dir on another disk; nothing was left there", terminal.ExitFailure
	case errors.Is(err, dataset.ErrTokenizer):
		failed.Code, failed.What, failed.Fix, code = "TOKENIZER_UNUSABLE", "the text cannot be tokenized so",
			"give the tokenizer.json of a byte-level BPE, a smaller --vocab-size, or more text", terminal.ExitUsage
	case errors.Is(err, dataset.ErrData):
		failed.Code, failed.What, failed.Fix, code = "DATA_INVALID", "the data cannot be used",
			"starling data validate says everything that is wrong with it", terminal.ExitUsage
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		return err
	}
	return terminal.WithExit(failed, code)
}

func tokenizeCommand(c *terminal.Console) *cobra.Command {
	var m dataSource
	var v dataset.Vocabulary
	var dir string
	cmd := &cobra.Command{
		Use:   "tokenize SOURCE... --dir DIR",
		Short: "Tokenize data once, for jobs to name",
		Long: `Write the tokens of data into DIR/tokens.bin, in the form of llm.c, and, with --vocab-size, the byte-level BPE
trained on it into DIR/tokenizer.json. Files are read in a stream and encoded on every core: the memory that it takes
does not grow with them, unless one line, or one word, is very long. A job that names both has the same corpus, and so
the same identifier of its data, as one that names the text; it begins without tokenizing. Nothing is overwritten. Paths
of a job file start from its folder.

With -o json: {"path","tokenizer","tokens","vocab_size","bytes","sha256","digest","job"}.`,
		Example: `  starling data tokenize corpus.jsonl --vocab-size 8192 --dir tokens
  starling data tokenize books/*.txt --tokenizer llama/tokenizer.json --dir tokens
  starling data tokenize examples/quickstart.yaml --dir tokens -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.Size < 0 || v.Size > 0 && v.File != "" || dir == "" {
				return usage.Error(cmd, errors.New("--dir is needed, and at most one of --tokenizer and --vocab-size"))
			}
			files, err := m.files(c, cmd, args)
			if err != nil {
				return err
			}
			watch, done := jobfile.Tokenizing(cmd.Context(), c)
			made, err := dataset.Tokenize(files, v, filepath.Clean(dir), watch)
			done()
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
	f.IntVar(&v.Size, "vocab-size", 0, "number of tokens of a tokenizer that is trained on the data")
	f.StringVar(&dir, "dir", "", "folder to write to; it is made if it is missing")
	return cmd
}
