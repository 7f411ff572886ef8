package apply

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/toploc"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/textgen"
)

// proofs is what comes of a file of answers.
type proofs struct {
	Answers int                  `json:"answers"`
	Tokens  int                  `json:"tokens"`
	Refused int                  `json:"refused"`
	Results []pretrained.Verdict `json:"results"`
}

// maxAnswerBytes is the longest line of a file of answers.
const maxAnswerBytes = 16 << 20

// Check is starling model check.
func Check(c *terminal.Console) *cobra.Command {
	var prove, signed bool
	var adapter string
	precision := string(toploc.BFloat16)
	var threads int
	cmd := &cobra.Command{
		Use:   "check MODEL FILE",
		Short: "Check which model made answers, by proofs of activations", Annotations: terminal.FiguresOnly,
		Long: `Check that answers come from a model, also if another stack made them, such as PyTorch. A line of FILE:
{"prompt": IDS, "answer": IDS, "proofs": [BASE64]}, with a proof of 258 bytes for each 32 tokens of the answer and the
last of the prompt (TOPLOC). starling.toploc of the Python SDK makes them of hidden states. The model reads an answer in
one pass. With --precision bf16 the published thresholds hold: of the 128 largest activations at most 38 have another
exponent, and the mantissas of the others differ by at most 10 in the mean and 8 in the median. With fp32, for stacks
that compute in float32, at most 8 of 128 differ at all.

A proof tells another model, prompt or text. In bf16 it does not tell a few changed tokens, nor weights in 8 bits, from
rounding; docs/performance.md has the figures. It convicts no account. Interfaces like OpenAI's give no hidden states,
so answers of llama.cpp behind one have no proofs.

With --receipts a line of FILE is {"receipt": BASE64}, as a provider of a hosted model has signed it. Receipts are
exact: each token is decided again in one pass, with the bits of this engine, and one other token is found. The weights
are in float32; those of an adapter are in --adapter, and MODEL is its base. With -o json a result has "wrong", the
first wrong token, from 0.

With --prove FILE has answers without proofs, and they are written with proofs of this engine. The exit code is 10 if an
answer is refused. With -o json: {"answers","tokens","refused","results":[{"holds","why","worst":{"exponents","mean",
"median","other"}}]}.`,
		Example: `  starling model check out/quickstart answers.jsonl
  starling model check out/quickstart answers.jsonl --precision fp32 -o json
  starling model check out/quickstart drawn.jsonl --prove > answers.jsonl
  starling model check out/quickstart receipts.jsonl --receipts
  starling model check out/base receipts.jsonl --receipts --adapter out/tuned/adapter`,
		Args: usage.Exactly("MODEL", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if threads < 1 {
				return usage.Error(cmd, errors.New("--threads must be at least 1"))
			}
			if prove && signed {
				return usage.Error(cmd, errBoth)
			}
			if adapter != "" && !signed {
				return usage.Error(cmd, errors.New("--adapter needs --receipts: proofs of activations are of whole models"))
			}
			m, file, err := inputs(args)
			if err != nil {
				return err
			}
			defer file.Close()
			if signed {
				of, err := checkable(args[0], m, adapter)
				if err != nil {
					return err
				}
				return checkReceipts(cmd, c, file, of, threads)
			}
			return checkAnswers(cmd, c, file, args[1], pretrained.NewProver(m, threads), prove,
				toploc.Precision(precision))
		},
	}
	cmd.Flags().Var(flagfile.OneOf(&precision, string(toploc.BFloat16), string(toploc.Float32)), "precision",
		"of the stack that made the proofs: bf16 or fp32")
	cmd.Flags().BoolVar(&prove, "prove", false, "write the answers with proofs, and check none")
	cmd.Flags().BoolVar(&signed, "receipts", false, "FILE has signed receipts of answers of a hosted model")
	adapterFlag(cmd, &adapter)
	usage.ThreadsFlag(cmd, &threads)
	return cmd
}

// loaded loads the model of a folder.
func loaded(dir string) (*pretrained.Model, error) {
	m, err := pretrained.Load(dir)
	if errors.Is(err, textgen.ErrModel) {
		return nil, terminal.UnreadableModel("use", dir, err, terminal.AnyModel)
	}
	return m, err
}

// inputs opens a model and a file.
func inputs(args []string) (*pretrained.Model, *os.File, error) {
	m, err := loaded(args[0])
	if err != nil {
		return nil, nil, err
	}
	file, err := os.Open(args[1])
	if err != nil {
		return nil, nil, answersError(args[1], err)
	}
	return m, file, nil
}

func answersError(name string, err error) error {
	return terminal.WithExit(&terminal.Problem{
		Code: "ANSWERS_UNREADABLE", What: "cannot use the answers in " + name, Why: err.Error(),
		Fix: `give a file of lines {"prompt": IDS, "answer": IDS, "proofs": [BASE64]} with tokens of this model`,
	}, terminal.ExitUsage)
}

// verdict is that on a line, which may be no answer of this model: a line of a stranger hides no other.
func verdict(p *pretrained.Prover, a pretrained.Answer, made toploc.Precision, err error) (v pretrained.Verdict) {
	if err == nil {
		v, err = p.Check(a, made)
	}
	if err != nil {
		return pretrained.Verdict{Why: err.Error()}
	}
	return v
}

// checkAnswers checks, or proves, the answers of a file line by line.
func checkAnswers(cmd *cobra.Command, c *terminal.Console, file io.Reader, name string, p *pretrained.Prover,
	prove bool, made toploc.Precision) error {
	all := proofs{Results: []pretrained.Verdict{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxAnswerBytes)
	for lines.Scan() {
		if err := cmd.Context().Err(); err != nil {
			return terminal.IfInterrupted(cmd.Context(), err, "")
		}
		var a pretrained.Answer
		err := json.Unmarshal(lines.Bytes(), &a)
		all.Answers++
		all.Tokens += len(a.Answer)
		if err == nil && prove {
			if a.Proofs, err = p.Prove(a); err == nil {
				err = json.NewEncoder(os.Stdout).Encode(a)
			}
		}
		if prove && err != nil {
			return answersError(name, fmt.Errorf("line %d: %w", all.Answers, err))
		}
		if !prove {
			v := verdict(p, a, made, err)
			if !v.Holds {
				all.Refused++
			}
			all.Results = append(all.Results, v)
		}
	}
	if err := lines.Err(); err != nil || prove {
		return err
	}
	if c.Form.Machine() {
		if err := c.Form.Print(os.Stdout, terminal.Figures(all)); err != nil {
			return err
		}
	} else {
		for i, v := range all.Results {
			if !v.Holds {
				fmt.Printf("answer %d is refused: %s\n", i+1, v.Why)
			}
		}
		fmt.Printf("%d answers of %d tokens checked with tolerance: %d refused\n", all.Answers, all.Tokens, all.Refused)
	}
	if all.Refused > 0 {
		return terminal.WithExit(&terminal.Problem{Code: "PROOF_REFUSED",
			What: fmt.Sprintf("%d of %d answers are not of this model", all.Refused, all.Answers),
			Fix:  "ask their maker for the model, prompts and tokens that the proofs were made with"}, terminal.ExitVerification)
	}
	return nil
}
