package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/card"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/textgen"
	"github.com/starling-network/starling/node/verify"
)

func modelEvalCommand(c *terminal.Console) *cobra.Command {
	var file string
	var window, threads int
	cmd := &cobra.Command{
		Use:   "eval MODEL",
		Short: "Measure how well a model predicts a text", Annotations: terminal.FiguresOnly,
		Long: `Measure the mean loss of a model on the text in a file, in nats a token; its exponential, the perplexity; and
the bits that the model needs for a byte, which compares models whatever their tokens are. The text is cut into
windows of --window tokens, and every token but the first of the text is predicted from those before it in its window.

Without --data, MODEL is the output folder of a run, and the figure is that of its training: the mean loss over
the windows that the job holds out. The data comes from the folder's blobs.

With -o json: {"loss","perplexity","bits_per_byte","tokens","bytes","window"}, without --data
{"loss","perplexity","tokens","window"}.`,
		Example: `  starling model eval out/quickstart
  starling model eval out/quickstart --data other.txt
  starling model eval out/quickstart --data - --window 64 -o json < other.txt`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if window < 0 || threads < 1 {
				return usage.Error(cmd, errors.New("--window must not be negative and --threads at least 1"))
			}
			e, err := evaluate(c, cmd, args[0], file, window, threads)
			switch {
			case errors.Is(err, rundir.ErrNotARun):
				return terminal.WithExit(&terminal.Problem{Code: "NOT_A_RUN", What: err.Error(),
					Fix: "give the output folder of `starling train`, or --data FILE"}, terminal.ExitNotFound)
			case errors.Is(err, textgen.ErrModel):
				return generateError(cmd, args[0], err)
			case err != nil:
				return terminal.IfInterrupted(cmd.Context(), err, "")
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(e))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "loss\t%.4f nats a token\nperplexity\t%.2f\n", e.Loss, e.Perplexity)
			if e.Bytes > 0 {
				fmt.Fprintf(w, "bits per byte\t%.4f\n", e.BitsPerByte)
			}
			fmt.Fprintf(w, "tokens\t%d in windows of %d\n", e.Tokens, e.Window)
			return w.Flush()
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "data", "", "file of text; - is standard input")
	f.IntVar(&window, "window", 0, "tokens that the model sees at once; 0: its context")
	f.IntVar(&threads, "threads", kernel.Cores, "number of threads")
	return cmd
}

// noteIgnored names the keys of the config.json of a model that were read over.
func noteIgnored(c *terminal.Console, dir string, keys []string) {
	if len(keys) > 0 && !c.Quiet {
		fmt.Fprintf(os.Stderr, "note: keys of %s that mean nothing to the model were ignored: %s\n",
			filepath.Join(dir, "config.json"), strings.Join(keys, ", "))
	}
}

// evaluate measures a model on a file, or on what its run held out.
func evaluate(c *terminal.Console, cmd *cobra.Command, dir, file string, window, threads int) (*pretrained.Evaluation,
	error) {
	if file == "" {
		return verify.EvaluateRun(cmd.Context(), dir, threads)
	}
	m, err := pretrained.Load(dir)
	if err != nil {
		return nil, err
	}
	noteIgnored(c, dir, m.Ignored)
	text, err := usage.ReadOrStdin(file)
	if err != nil {
		return nil, terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot read the text",
			Why: err.Error(), Fix: "give a file of text"}, terminal.ExitNotFound)
	}
	return m.Evaluate(cmd.Context(), string(text), window, threads)
}

func modelCardCommand(c *terminal.Console) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "card OUT",
		Short: "Write the model card of a run",
		Long: `Write README.md into the output folder of a finished run: front matter that Hugging Face reads, and what the
model is, its data by digest, its lineage, who trained it and what was earned, and how to check it. With
--verify the run is computed again first, as by starling job verify, and the card says so. Training writes the
card too; this writes it anew.`,
		Example: `  starling model card out/quickstart
  starling model card out/quickstart --verify`,
		Args: usage.Exactly("OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := card.Read(os.DirFS(args[0]))
			if err != nil {
				return terminal.WithExit(&terminal.Problem{Code: "NOT_A_RUN", What: "cannot describe the model in " + args[0],
					Why: err.Error(), Fix: "give the output folder of a finished `starling train`"}, terminal.ExitNotFound)
			}
			if check {
				show := c.Counter("round")
				v, err := verify.Run(cmd.Context(), args[0], verify.Options{Progress: show, Shipped: true})
				show(0, 0)
				if err != nil {
					return terminal.IfInterrupted(cmd.Context(), cause.Verification(err), "")
				}
				made.Verified = &card.Verification{Rounds: len(v.Rounds), Units: v.Units, StateRoot: v.StateRoot.String()}
			}
			var text bytes.Buffer
			if err := made.Write(&text); err != nil {
				return err
			}
			path := filepath.Join(args[0], card.File)
			if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(map[string]any{"path": path, "verified": check}, path))
			}
			fmt.Println(path)
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "verify", false, "compute the run again first")
	return cmd
}

// shown is a model as `starling model show` prints it.
type shown struct {
	Architecture string      `json:"architecture"`
	Parameters   int         `json:"parameters"`
	Context      int         `json:"context"`
	Vocabulary   int         `json:"vocabulary"`
	Files        []shownFile `json:"files"`
}

type shownFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func modelShowCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "show MODEL",
		Short: "Show what a model is, and its files by digest",
		Long: `Show the architecture, the size, the context and the vocabulary of the model in a folder, which is loaded and
checked for it, and the files that make it, by SHA-256.

With -o json: {"architecture","parameters","context","vocabulary","files":[{"name","bytes","sha256"}]}.`,
		Example: `  starling model show out/quickstart
  starling model show out/quickstart -o json`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := pretrained.Load(args[0])
			if err != nil {
				return generateError(cmd, args[0], err)
			}
			noteIgnored(c, args[0], m.Ignored)
			s := shown{Architecture: m.Config.Architecture(), Parameters: m.Config.Parameters(), Context: m.Config.Context(),
				Vocabulary: m.Tokenizer.VocabSize()}
			if s.Files, err = modelFiles(args[0]); err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(s, args[0]))
			}
			fmt.Printf("%s  %s parameters, context %d, vocabulary %d\n", s.Architecture, terminal.Number(float64(s.Parameters)),
				s.Context, s.Vocabulary)
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			for _, f := range s.Files {
				fmt.Fprintf(w, "%s\t%d\tsha256:%s\n", f.Name, f.Bytes, f.SHA256)
			}
			return w.Flush()
		},
	}
}

// modelFiles lists the files of a model and its adapter, with their digests.
func modelFiles(dir string) (files []shownFile, err error) {
	var paths []string
	for _, pattern := range []string{"*.safetensors", "*.gguf", "config.json", "tokenizer.json", "adapter/*.safetensors",
		"adapter/*.json"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		n, err := io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, err
		}
		files = append(files, shownFile{filepath.ToSlash(name), n, hex.EncodeToString(h.Sum(nil))})
	}
	return files, nil
}
