package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/download"
	"github.com/starling-network/starling/node/pull"
)

// scheme begins the name of a model of the Hugging Face Hub.
const scheme = "hf:"

func pullCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	var to, revision string
	var most int64
	cmd := &cobra.Command{
		Use:   "pull JOB|hf:OWNER/NAME --to DIR",
		Short: "Copy a model from a server, or from the Hugging Face Hub",
		Long: `Copy the files of the model of a finished run into a folder, which starling model generate, chat and serve
then take: weights, configuration, tokenizer, card. A file that is there with the same size is left; nothing else is
overwritten.

hf:OWNER/NAME is a model of the Hugging Face Hub, or of the server that HF_ENDPOINT names: safetensors, configuration,
tokenizer, card and licence, of one commit. Weights are checked against the digests that the server tells. A download
that was cut off continues. HF_TOKEN, if it is set, is sent to that server alone. Models that have only
pytorch_model.bin are refused: a program may hide in it.

` + source.JobNames + `

With -o json: {"to","files":[{"name","kind","bytes","modified"}]}; of hf: {"repo","commit","to","files":[{"name",
"bytes","sha256","had"}]}.`,
		Example: `  starling model pull quickstart --api http://10.0.0.7:7300 --to models/quickstart
  starling model pull quickstart --to copy
  starling model pull hf:HuggingFaceTB/SmolLM2-135M --to models/smol
  HF_ENDPOINT=https://mirror.example.org starling model pull hf:openai-community/gpt2 --revision main --to gpt2`,
		Args: usage.Exactly("JOB|hf:OWNER/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return usage.Error(cmd, errors.New("--to is needed: a folder"))
			}
			if repo, ok := strings.CutPrefix(args[0], scheme); ok {
				return pullHub(cmd.Context(), c, pull.Options{Repo: repo, Revision: revision, To: to, MaxBytes: most * 1e9})
			}
			a, j, err := p.Find(cmd, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			files, err := a.Fetch(cmd.Context(), j.ID, to, []string{"model"})
			if err != nil {
				return err
			}
			return source.PrintFetched(c, to, files)
		},
	}
	p.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "folder to write to; it is made if it is missing")
	f.StringVar(&revision, "revision", "main", "with hf:OWNER/NAME: branch, tag or commit")
	f.Int64Var(&most, "max-gb", 100, "with hf:OWNER/NAME: refuse a larger model, in 10^9 bytes; 0: no limit")
	return cmd
}

func pullHub(ctx context.Context, c *terminal.Console, o pull.Options) error {
	progress := terminal.NewProgress(os.Stderr, terminal.ModeFor(os.Stderr, c.Quiet || c.Form.Machine()),
		terminal.Width(os.Stderr))
	told := map[string]time.Time{}
	o.Say = func(file string, done, whole int64) {
		if now := time.Now(); now.Sub(told[file]) >= 5*time.Second && done < whole {
			told[file] = now
			progress.Say(now, fmt.Sprintf("%s: %s of %s", file, terminal.Bytes(uint64(done)), terminal.Bytes(uint64(whole))))
		}
	}
	m, err := pull.Pull(ctx, o)
	progress.Done()
	if err != nil {
		return terminal.IfInterrupted(ctx, hubError(o, err),
			fmt.Sprintf("starling model pull %s%s --revision %s --to %s", scheme, o.Repo, o.Revision, o.To))
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.List(m, m.Files,
			func(f pull.File) string { return filepath.Join(o.To, f.Name) }))
	}
	bytes := int64(0)
	for _, f := range m.Files {
		bytes += f.Bytes
	}
	fmt.Printf("%s: %d files, %s, commit %s\n", o.To, len(m.Files), terminal.Bytes(uint64(bytes)), m.Commit)
	return nil
}

// hubError gives what can happen at the Hub codes.
func hubError(o pull.Options, err error) error {
	p, exit := &terminal.Problem{What: "cannot pull " + scheme + o.Repo, Why: err.Error()}, terminal.ExitUnreachable
	var no *download.StatusError
	switch {
	case errors.Is(err, pull.ErrName):
		p.Code, p.Fix, exit = "HUB_NAME", "write it as hf:OWNER/NAME, such as hf:openai-community/gpt2", terminal.ExitUsage
	case errors.Is(err, pull.ErrNoModel):
		p.Code, p.Fix, exit = "HUB_NOT_FOUND", "check the name and --revision; of a private model, set HF_TOKEN",
			terminal.ExitNotFound
	case errors.Is(err, pull.ErrAccess):
		p.Code, p.Fix, exit = "HUB_ACCESS", "set HF_TOKEN to a token that may read it, and accept its terms on its page",
			terminal.ExitAuth
	case errors.Is(err, pull.ErrPickle):
		p.Code, p.Fix, exit = "HUB_PICKLE", "download it with the tools of the Hub and convert it: docs/models.md has the "+
			"command", terminal.ExitConflict
	case errors.Is(err, pull.ErrNothing):
		p.Code, p.Fix, exit = "HUB_NO_MODEL", "name a repository of a model", terminal.ExitNotFound
	case errors.Is(err, pull.ErrConflict):
		p.Code, p.Fix, exit = "FILE_EXISTS", "give another --to; nothing is overwritten", terminal.ExitConflict
	case errors.Is(err, pull.ErrTooLarge), errors.Is(err, download.ErrTooLarge):
		p.Code, p.Fix, exit = "TOO_LARGE", "raise --max-gb", terminal.ExitConflict
	case errors.Is(err, download.ErrDigest):
		p.Code, p.Fix, exit = "DIGEST_MISMATCH", "try again; if it stays so, the server or what is between is broken",
			terminal.ExitVerification
	case errors.As(err, &no):
		p.Code, p.Fix = "HUB_REFUSED", "try again later"
	default:
		p.Code, p.Fix = "HUB_UNREACHABLE", "check the connection, HF_ENDPOINT and the room on the disk; what is there "+
			"stays, and the same command continues"
	}
	return terminal.WithExit(p, exit)
}
