package arena

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/data/tokenizer"
	nodearena "github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/protocol/arena"
)

// hosting is what a host asks for.
type hosting struct {
	target.Target
	title, text, tokenizer    string
	prize, bond, deposit, fee string
	curve, base               string
	window, examples          int
	width, worst              float64 // nats
	mebibytes                 uint64
	terms                     arena.Terms
}

func createCommand(c *terminal.Console) *cobra.Command {
	o := hosting{terms: arena.Terms{}}
	cmd := &cobra.Command{
		Use:   "create TEXT --tokenizer FOLDER --prize AMOUNT --home DIR",
		Short: "Begin a contest of models on a text that stays hidden until models are entered",
		Long: `Begin a contest: make a hidden set of examples from a file of text, commit to it, and lock the prize, the
bond and the fees of the evaluators. The text is cut into windows of --window tokens of the tokenizer.json in
--tokenizer; models must have this vocabulary, and a context of that length. The set stays in the folder arena/ of
--home, which must be kept: after --enter-blocks, starling market arena reveal publishes it. A host that does not
loses --bond to the entrants, and the prize comes back. Enter no model that saw the text: a host that knows its own
set wins it.

The prize is shared by places. --curve linear (the default) gives K places parts as K, K-1 and so on to 1; softmax
parts that fall to 1/e for each --width nats of loss; winner all to the first. Entries that no duel tells apart share
places. --worst is the largest mean loss, in nats a token, that has a place. Entries that an evaluator finds to be
copies of earlier ones lose --deposit, as do those that are not revealed. --base is a public model that entries may be
tuned from: without it, two models tuned from one base are copies of each other. It must be served until the contest is
over: if evaluators cannot get it, the host has hidden its set. One party may enter many models: without --worst, and
with deposits whose sum is below the prize, it can fill the contest with weak ones.

Amounts are in ZEN, or in another coin with its symbol, such as 25usdc: the same in all.

With -o json: the contest, as starling market arena show prints it.`,
		Example: `  starling market arena create held.txt --tokenizer out/quickstart --prize 100 --home net/consumer
  starling market arena create held.txt --title "Code" --tokenizer out/base --prize 500usdc --bond 100usdc \
    --deposit 5usdc --fee 10usdc --places 5 --base out/base --base-url http://203.0.113.8/base --home net/consumer`,
		Args: usage.Exactly("TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.text = args[0]
			if err := o.check(cmd); err != nil {
				return err
			}
			return explain(o.create(cmd, c))
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.title, "title", "", "title of the contest (default: the name of the file)")
	f.StringVar(&o.tokenizer, "tokenizer", "", "folder with tokenizer.json, such as that of a model")
	f.StringVar(&o.prize, "prize", "", "prize, such as 100 or 100usdc")
	f.StringVar(&o.bond, "bond", "", "what the host loses if it does not publish the set (default: a tenth of the prize)")
	f.StringVar(&o.deposit, "deposit", "", "what an entrant locks (default: a hundredth of the prize)")
	f.StringVar(&o.fee, "fee", "", "of each evaluator (default: a hundredth of the prize)")
	f.IntVar(&o.window, "window", 128, "tokens of an example")
	f.IntVar(&o.examples, "examples", 2000, "most examples of the set")
	f.Uint32Var(&o.terms.Panel, "evaluators", 3, "evaluators that are drawn, an odd number of 3 to 15: more than half "+
		"must agree")
	f.Uint32Var(&o.terms.Most, "entries", 32, "most entries")
	f.Uint64Var(&o.mebibytes, "max-size", 4096, "largest model in MiB")
	f.Uint32Var(&o.terms.Entering, "enter-blocks", 10_000, "blocks in which models are entered")
	f.Uint32Var(&o.terms.Revealing, "reveal-blocks", 2_000, "most blocks in which the set and the models are revealed")
	f.Uint32Var(&o.terms.Judging, "judge-blocks", 5_000, "most blocks in which evaluators evaluate, and in which they "+
		"open their reports")
	f.Var(flagfile.OneOf(&o.curve, arena.Linear.String(), arena.Winner.String(), arena.Softmax.String()), "curve",
		"how the prize is shared: linear (default), winner or softmax")
	f.Uint32Var(&o.terms.Places, "places", 0, "places that share the prize (default: 3, and 1 for winner)")
	f.Float64Var(&o.width, "width", 0.05, "of --curve softmax: nats of loss by which a part falls to 1/e")
	f.Float64Var(&o.worst, "worst", 0, "largest mean loss that has a place, in nats a token (default: none)")
	f.StringVar(&o.base, "base", "", "folder of a model that entries may be tuned from")
	f.StringVar(&o.terms.BaseURL, "base-url", "", "URL of that folder, with the file that --base writes there")
	f.StringVar(&o.terms.About, "about", "", "URL at which entrants read about the contest, and get the tokenizer")
	return cmd
}

// check reads the flags that need no network.
func (o *hosting) check(cmd *cobra.Command) error {
	for _, text := range []string{o.prize, o.bond, o.deposit, o.fee} {
		if text == "" {
			continue
		}
		if err := target.WantCoins(cmd, text); err != nil {
			return err
		}
	}
	o.terms.Curve, _ = arena.ParseCurve(cmp.Or(o.curve, arena.Linear.String())) // the flag takes no other names
	if o.terms.Places == 0 {
		o.terms.Places = map[arena.Curve]uint32{arena.Linear: 3, arena.Softmax: 3, arena.Winner: 1}[o.terms.Curve]
	}
	const most = arena.MaxWorst
	switch {
	case o.Home == "":
		return usage.Error(cmd, errors.New("--home is needed: the folder of the account that hosts"))
	case o.prize == "" || o.tokenizer == "":
		return usage.Error(cmd, errors.New("--prize and --tokenizer are needed"))
	case o.window < 2 || o.window > arena.MaxLength || o.examples < arena.MinExamples || o.examples > arena.MaxExamples:
		return usage.Error(cmd, fmt.Errorf("--window is from 2 to %d, and --examples from %d to %d", arena.MaxLength,
			arena.MinExamples, arena.MaxExamples))
	case !(o.width > 0 && o.width <= most) || !(o.worst >= 0 && o.worst <= most):
		return usage.Error(cmd, fmt.Errorf("--width is above 0 and --worst at least 0, both at most %d nats", most))
	case !arena.URL(o.terms.About) || !arena.URL(o.terms.BaseURL):
		return usage.Error(cmd, errors.New("--about and --base-url begin with http:// or https://"))
	case (o.base == "") != (o.terms.BaseURL == ""):
		return usage.Error(cmd, errors.New("--base and --base-url belong together"))
	case o.mebibytes == 0 || o.mebibytes > arena.MaxBytes>>20:
		return usage.Error(cmd, fmt.Errorf("--max-size is from 1 to %d MiB", uint64(arena.MaxBytes>>20)))
	}
	if o.terms.Curve == arena.Softmax {
		o.terms.Width = uint32(math.Ceil(o.width * 1e6))
	}
	o.terms.Worst, o.terms.MaxBytes = uint64(math.Round(o.worst*1e6)), o.mebibytes<<20
	o.terms.Title = cmp.Or(o.title, filepath.Base(o.text))
	return nil
}

func (o *hosting) create(cmd *cobra.Command, c *terminal.Console) error {
	if err := o.set(); err != nil {
		return err
	}
	var v Shown
	err := o.Act(cmd, "the folder of the account that hosts", func(ctx context.Context, cl *client.Client) error {
		id, err := o.begin(ctx, cl)
		if err != nil {
			return err
		}
		v, err = ask(ctx, cl, id)
		return err
	})
	if err != nil {
		return err
	}
	return show(c, v)
}

// set makes the hidden set, and lists the base.
func (o *hosting) set() error {
	unusable := func(err error, what string) error {
		return terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: what, Why: err.Error(),
			Fix: "give a file of text, and a folder with the tokenizer.json of a model"}, terminal.ExitNotFound)
	}
	text, err := os.ReadFile(o.text)
	if err != nil {
		return unusable(err, "cannot read the text")
	}
	raw, err := os.ReadFile(filepath.Join(o.tokenizer, "tokenizer.json"))
	if err != nil {
		return unusable(err, "cannot read the tokenizer")
	}
	tok, err := tokenizer.Parse(raw)
	if err != nil {
		return unusable(err, "cannot read the tokenizer")
	}
	s, err := nodearena.MakeSet(dirs(o.Home, "sets"), string(text), nodearena.Tokens{Encode: tok.Encode,
		Vocab: tok.VocabSize(), Window: o.window, Examples: o.examples})
	if err != nil {
		return err
	}
	o.terms.Tokenizer = sha256.Sum256(raw)
	o.terms.Set, o.terms.Examples, o.terms.Vocab, o.terms.Length = s.Root(), uint32(len(s.Examples)), s.Vocab, s.Length()
	if o.base == "" {
		return nil
	}
	list, err := nodearena.ListBase(o.base)
	o.terms.Base = list
	return err
}

// begin begins the contest, unless an earlier call did.
func (o *hosting) begin(ctx context.Context, cl *client.Client) (uint64, error) {
	all, err := cl.Arena.Contests(ctx, true)
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		if c.Host == cl.Address() && c.Terms.Set == o.terms.Set {
			return c.ID, nil
		}
	}
	prize, err := coins.Parse(ctx, cl.Market, o.prize)
	if err != nil {
		return 0, err
	}
	o.terms.Prize, o.terms.Denom = prize.Grains, prize.Denom
	for _, amount := range []struct {
		text  string
		part  uint64
		grain *uint64
	}{{o.bond, 10, &o.terms.Bond}, {o.deposit, 100, &o.terms.Deposit}, {o.fee, 100, &o.terms.Fee}} {
		if amount.text == "" {
			*amount.grain = prize.Grains / amount.part
			continue
		}
		a, err := coins.Parse(ctx, cl.Market, amount.text)
		if err == nil && a.Denom != prize.Denom {
			err = fmt.Errorf("%w: %s with a prize of %s: one coin is wanted", coins.ErrText, a, prize)
		}
		if err != nil {
			return 0, err
		}
		*amount.grain = a.Grains
	}
	return cl.Arena.Create(ctx, o.terms)
}
