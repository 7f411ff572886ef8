package model

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/model/gguf"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/serve"
)

// ggufTypes are the types of a file, by the names of the command.
var ggufTypes = map[string]gguf.Type{"f32": gguf.F32, "f16": gguf.F16, "q8_0": gguf.Q8_0, "q4_0": gguf.Q4_0}

const ggufTypeNames = "f32, f16, q8_0, q4_0"

// Exported is the answer of model export.
type Exported struct {
	Format string `json:"format"`
	Type   string `json:"type"`
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
}

func exportCommand(c *terminal.Console) *cobra.Command {
	var format, kind, file string
	cmd := &cobra.Command{
		Use:   "export MODEL",
		Short: "Write a model as one file for llama.cpp",
		Long: `Write the model in a folder as one GGUF file, which llama.cpp and what is built on it run: the output folder of
a run, a model that was pulled or tuned, or a Llama in Hugging Face form. The file holds the weights, the tokenizer,
the tokens that begin and end a text, and the chat template. --type f32 and f16 keep the weights, q8_0 and q4_0
quantise the matrices in blocks of 32; with q4_0 the embeddings and the head are q8_0.

Only models of the families that docs/models.md lists for it are written, with a tokenizer that llama.cpp has.

With -o json: {"format","type","file","bytes"}.`,
		Example: `  starling model export out/finetune --format gguf --type q8_0
  starling model export models/quickstart --format gguf --type f16 --file quickstart.gguf`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, ok := ggufTypes[strings.ToLower(kind)]
			if format != "gguf" || !ok {
				return usage.Error(cmd, fmt.Errorf("--format is gguf, --type one of %s", ggufTypeNames))
			}
			if file == "" {
				file = filepath.Join(args[0], "model.gguf")
			}
			size, err := exportGGUF(args[0], file, t)
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(Exported{format, strings.ToLower(kind), file, size}, file))
			}
			fmt.Printf("%s  %s, %d bytes\nnext: llama-cli -m %s\n", file, t, size, file)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "gguf", "gguf")
	f.StringVar(&kind, "type", "f16", "type of the matrices: "+ggufTypeNames)
	f.StringVar(&file, "file", "", `file to write; "" is model.gguf in the folder`)
	return cmd
}

// exportGGUF writes the model in a folder to a file, which is there whole or not at all.
func exportGGUF(dir, file string, t gguf.Type) (size int64, err error) {
	m, err := pretrained.Load(dir)
	if err != nil {
		return 0, terminal.UnreadableModel("read", dir, err,
			"give the folder of a model, with config.json, tokenizer.json and its safetensors")
	}
	template, err := serve.TemplateOf(dir)
	if err != nil {
		return 0, terminal.WithExit(&terminal.Problem{Code: "MODEL_UNREADABLE",
			What: "cannot read the chat template in " + dir, Why: err.Error(), Fix: "correct the file, or delete it"},
			terminal.ExitNotFound)
	}
	name := dir
	if whole, err := filepath.Abs(dir); err == nil {
		name = whole
	}
	unusable := func(err error) error {
		return terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot write " + file, Why: err.Error(),
			Fix: "see whether this user may do it, and whether the disk has room"}, terminal.ExitFailure)
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part")
	if err != nil {
		return 0, unusable(err)
	}
	defer os.Remove(f.Name()) // it is gone where all went well
	w := bufio.NewWriterSize(f, 1<<20)
	err = gguf.Encode(w, gguf.Model{Name: filepath.Base(name), Config: m.Config, Tensors: m.Tensors,
		Tokenizer: m.Tokenizer, Template: template}, t)
	if errors.Is(err, gguf.ErrModel) || errors.Is(err, gguf.ErrTokenizer) || errors.Is(err, gguf.ErrRange) {
		_ = f.Close()
		return 0, terminal.WithExit(&terminal.Problem{Code: "MODEL_UNSUPPORTED",
			What: "the model has no form in GGUF as " + t.String(), Why: err.Error(),
			Fix: "use the folder itself, which Hugging Face libraries load; llama.cpp's converter knows more families"},
			terminal.ExitFailure)
	}
	if err := errors.Join(err, w.Flush(), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return 0, unusable(err)
	}
	info, err := os.Stat(f.Name())
	if err != nil {
		return 0, unusable(err)
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return 0, unusable(err)
	}
	return info.Size(), nil
}
