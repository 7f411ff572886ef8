package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/card"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/verify"
)

func cardCommand(c *terminal.Console) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "card OUT",
		Short: "Write the model card of a run",
		Long: `Write README.md into the output folder of a finished run: front matter that Hugging Face reads, and what the
model is, its data by digest, its lineage, who trained it and what was earned, and how to check it. With
--verify the run is computed again first, as by starling job verify, and the card says so. Training writes the
card too; this writes it again.`,
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

func showCommand(c *terminal.Console) *cobra.Command {
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
			m, err := pretrained.Open(args[0])
			if err != nil {
				return generateError(cmd, args[0], err)
			}
			c.NoteIgnored(args[0], m.Ignored())
			s := shown{Architecture: m[0].Config.Architecture(), Parameters: m.Parameters(), Context: m.Context(),
				Vocabulary: m[0].Tokenizer.VocabSize()}
			if len(m) > 1 {
				s.Architecture = fmt.Sprintf("mixture of %d experts", len(m))
			}
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
	experts, err := pretrained.ReadMixture(dir)
	if err != nil {
		return nil, err
	}
	folders := []string{""}
	for _, e := range experts {
		folders = append(folders, e.Path)
	}
	for _, folder := range folders {
		for _, pattern := range []string{pretrained.MixtureFile, "*.safetensors", "*.gguf", "config.json", "tokenizer.json",
			"adapter/*.safetensors", "adapter/*.json"} {
			found, err := filepath.Glob(filepath.Join(dir, folder, pattern))
			if err != nil {
				return nil, err
			}
			paths = append(paths, found...)
		}
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
