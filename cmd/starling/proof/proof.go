// Package proof has the commands that make, check and publish proofs about adapters: starling model proof. The proofs
// are those of package proof, and node/proven reads the folders.
package proof

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/proven"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/ceremony"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/proof/verifier"
)

// Command is starling model proof.
func Command(c *terminal.Console) *cobra.Command {
	setup := usage.Group("setup", "Make the keys of proofs, to which many parties contribute",
		`Make the proving key and the verifying key for adapters, networks or sums of one shape, or for sales. A setup is a
folder. Each party in turn contributes to it with randomness of its own, and passes the folder on; a public beacon ends
each of the two phases. A party that knows the randomness of all contributors can forge proofs: one contributor that
forgets its own is enough. So contribute yourself, or trust one contributor. A setup of one party protects from no
forgery by that party.`,
		startCommand(c), contributeCommand(c), sealCommand(c), verifyCommand(c))
	return usage.Group("proof", "Prove what a model computes, without its weights",
		`Prove what the low-rank adapter of a layer adds to the layer of its base model on a text (make), what a network says
about an image (infer), or that a sum is that of updates to which their owners committed (commit, sum), without showing
weights or updates; check such proofs; and have a network verify them, so that buyers see them. docs/proofs.md says what
each proof shows, and what not.`,
		makeCommand(c), inferCommand(c), commitCommand(c), sumCommand(c), checkCommand(c), setup, layersCommand(c),
		exportCommand(c), registerCommand(c), keyCommand(c), publishCommand(c), listCommand(c))
}

// explain explains the errors of proofs, of setups and of the folders of models.
func explain(err error) error {
	if err == nil || terminal.Explained(err) {
		return err
	}
	for _, known := range []struct {
		is        error
		code, fix string
		exit      int
	}{
		{proof.ErrInvalid, "PROOF_INVALID", "ask the maker for another proof, and do not trust this one",
			terminal.ExitVerification},
		{proven.ErrOther, "PROOF_OTHER", "name the folders and the keys that the proof is about", terminal.ExitVerification},
		{ceremony.ErrFalse, "SETUP_FALSE", "use no key of this setup; begin another, or restore the file",
			terminal.ExitVerification},
		{ceremony.ErrPhase, "SETUP_PHASE", "starling model proof setup --help has the order of the commands",
			terminal.ExitConflict},
		{ceremony.ErrSetup, "NO_SETUP", "name the folder of a setup: starling model proof setup start", terminal.ExitUsage},
		{proof.ErrShape, "PROOF_SHAPE", "name a shape within these limits", terminal.ExitUsage},
		{opening.ErrLeaves, "PROOF_LEAVES", "give --leaves within these limits", terminal.ExitUsage},
		{opening.ErrKey, "PROOF_KEY", "name the folder of a setup for sales", terminal.ExitUsage},
		{proof.ErrKey, "PROOF_KEY", "name the verifying.key of a setup", terminal.ExitUsage},
		{proof.ErrStatement, "PROOF_STATEMENT", "make the proof again, with inputs that fit the keys", terminal.ExitUsage},
		{proof.ErrProof, "NO_PROOF", "name a file that starling model proof make, infer or sum wrote", terminal.ExitUsage},
		{proof.ErrNumber, "WEIGHTS_NOT_FINITE", "train the adapter again", terminal.ExitUsage},
		{proven.ErrSecret, "NO_SECRET", "name the file with the secret that the maker of the proof gave you",
			terminal.ExitUsage},
		{proven.ErrUpdate, "NO_UPDATE", "name safetensors of float32 for commit, and files of commit for sum: one for each " +
			"place", terminal.ExitUsage},
		{proven.ErrFolder, "NO_MODEL", "name a folder with adapter_config.json and adapter_model.safetensors, or one that " +
			"holds them in adapter, and the folder of the model that it adapts; for infer, that of an mlp which classifies " +
			"images", terminal.ExitNotFound},
		{pretrained.ErrModel, "NO_MODEL", "name the folder of a model with config.json, tokenizer.json and its weights",
			terminal.ExitNotFound},
		{architecture.ErrAdapter, "NO_LAYER", "starling model proof layers lists the layers", terminal.ExitUsage},
	} {
		if errors.Is(err, known.is) {
			return terminal.WithExit(&terminal.Problem{Code: known.code, What: err.Error(), Fix: known.fix}, known.exit)
		}
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return terminal.FileProblem(path)
	}
	return err
}

// read reads a proof.
func read(name string) (p verifier.Proof, data []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return p, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p, nil, err
	}
	if info.Size() > verifier.MaxProof {
		return p, nil, fmt.Errorf("%w: %s has %d bytes, at most %d", proof.ErrProof, name, info.Size(), verifier.MaxProof)
	}
	if data, err = os.ReadFile(name); err != nil {
		return p, nil, err
	}
	p, err = verifier.Decode(data)
	return p, data, err
}

// layer of an adapter for programs.
type layer struct {
	Layer string `json:"layer"`
	Rank  uint32 `json:"rank"`
	In    uint32 `json:"in"`
	Out   uint32 `json:"out"`
}

func layersCommand(c *terminal.Console) *cobra.Command {
	var base string
	cmd := &cobra.Command{
		Use:   "layers ADAPTER --base MODEL",
		Short: "List the layers that an adapter changes, with their shapes",
		Long: `List the layers of a base model that an adapter changes, with the rank of the adapter and the numbers of inputs
and outputs of the layer: the shape for which keys are needed. With -o json: {"layers":[{"layer","rank","in","out"}]}.`,
		Example: `  starling model proof layers out/tuned --base models/base`,
		Args:    usage.Exactly("ADAPTER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if base == "" {
				return usage.Error(cmd, errors.New("--base is needed: the folder of the model that the adapter adapts"))
			}
			m, err := pretrained.Load(base)
			if err != nil {
				return explain(err)
			}
			names, shapes, err := proven.Layers(args[0], m)
			if err != nil {
				return explain(err)
			}
			list := []layer{}
			for i, n := range names {
				list = append(list, layer{n, shapes[i].Rank, shapes[i].In, shapes[i].Out})
			}
			return terminal.PrintList(c.Form, "layers", list, func(l layer) string { return l.Layer },
				[]string{"LAYER", "RANK", "IN", "OUT"},
				func(l layer) []any { return []any{l.Layer, l.Rank, l.In, l.Out} })
		},
	}
	cmd.Flags().StringVar(&base, "base", "", "folder of the base model")
	return cmd
}
