package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	chainreward "github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
)

var (
	operationSeeds  = flag.Uint64("operations", 1, "seeds, from -seed on, that TestRandomOperations makes operations of")
	operationBlocks = flag.Int("blocks", 60, "blocks of random operations that TestRandomOperations makes with each seed")
)

// chaos is a chain whose accounts do whatever comes to their mind, much of it refused: coins, stakes and proposals of the SDK,
// and every message of ours.
type chaos struct {
	*rand.Rand
	*ledger
	names    []string
	jobs     int
	messages map[string][2]int // tried and executed, by type
}

func newChaos(t *testing.T, seed uint64) *chaos {
	x := &chaos{Rand: rand.New(rand.NewPCG(seed, 2)), messages: map[string][2]int{}}
	var keys []chain.Keys
	for i := range 3 {
		keys = append(keys, chain.NewKeys(canon.Sum("chaos", []byte{byte(i)})))
	}
	var accounts []chain.Funded
	for i := range 12 {
		x.names = append(x.names, "account-"+strconv.Itoa(i))
		accounts = append(accounts, chain.Funded{Address: keyOf(x.names[i]).Address(), Amount: 1_000_000_000})
	}
	doc, err := chain.Genesis("chaos", time.Unix(1_000_000_000, 0), keys, accounts)
	if err == nil {
		err = hasty(doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	x.ledger = must(newLedger(doc, keys))(t)
	must(x.block(t.Context(), 0))(t) // before it there is no state to read
	for i, name := range x.names {
		r := []run.Role{run.Worker, run.Worker, run.Verifier}[i%3]
		me := keyOf(name).Address()
		must(x.check(x.sign(t, keyOf(name),
			&registrypb.MsgRegister{Sender: me, PeerId: "peer", Roles: []registrypb.Role{registrypb.Role(r)}, Stake: 50_000_000},
			&marketpb.MsgOffer{Sender: me, Role: registrypb.Role(r), Price: 100 * uint64(i+1), Slots: 2})))(t)
	}
	return x
}

// pick is one of a list.
func pick[T any](x *chaos, list []T) T { return list[x.IntN(len(list))] }

// amount in uzen, of any size.
func (x *chaos) amount() uint64 { return x.Uint64N(1 << x.IntN(32)) }

func (x *chaos) job() string { return "job-" + strconv.Itoa(x.IntN(x.jobs+1)) }

func (x *chaos) account() string { return keyOf(pick(x, x.names)).Address() }

func (x *chaos) coins() sdk.Coins {
	return sdk.Coins{sdk.NewCoin(adapter.Denom, sdkmath.NewIntFromUint64(x.amount()))}
}

func (x *chaos) validator() string {
	return sdk.ValAddress(pick(x, x.validators).Operator.PubKey().Address()).String()
}

func (x *chaos) digest() canon.Digest { return canon.Sum("chaos", []byte{byte(x.IntN(4))}) }

func (x *chaos) role() run.Role { return pick(x, []run.Role{run.Worker, run.Worker, run.Verifier}) }

// operation lets an account say something; what comes to c is signed and sent.
func (x *chaos) operation(ctx context.Context, c *client.Client) error {
	submit := func(m sdk.Msg) error { _, err := c.Submit(ctx, m); return err }
	me := c.Address()
	switch x.IntN(32) {
	case 0:
		return submit(&banktypes.MsgSend{FromAddress: me, ToAddress: x.account(), Amount: x.coins()})
	case 1:
		return submit(&banktypes.MsgSend{FromAddress: me, ToAddress: client.ModuleAddress(pick(x, []string{"market", "registry", "reward", "gov", "distribution"})), Amount: x.coins()})
	case 2:
		return submit(&banktypes.MsgSend{FromAddress: me, ToAddress: x.account(), Amount: sdk.NewCoins(sdk.NewInt64Coin(chainreward.Denom(x.job()), 1+x.Int64N(300_000)))})
	case 3:
		return submit(&stakingtypes.MsgDelegate{DelegatorAddress: me, ValidatorAddress: x.validator(), Amount: x.coins()[0]})
	case 4:
		return submit(&stakingtypes.MsgUndelegate{DelegatorAddress: me, ValidatorAddress: x.validator(), Amount: x.coins()[0]})
	case 5:
		return submit(&stakingtypes.MsgBeginRedelegate{DelegatorAddress: me, ValidatorSrcAddress: x.validator(), ValidatorDstAddress: x.validator(), Amount: x.coins()[0]})
	case 6:
		return submit(pick(x, []sdk.Msg{
			&distrtypes.MsgWithdrawDelegatorReward{DelegatorAddress: me, ValidatorAddress: x.validator()},
			&distrtypes.MsgFundCommunityPool{Depositor: me, Amount: x.coins()},
		}))
	case 7:
		return x.propose(submit, me)
	case 8:
		return submit(&govv1.MsgDeposit{ProposalId: 1 + x.Uint64N(10), Depositor: me, Amount: x.coins()})
	case 9:
		return c.Register(ctx, registry.Participant{
			Roles: []run.Role{x.role()}, PeerID: "peer", Stake: x.amount() + x.Uint64N(2)*50_000_000, Pool: pick(x, []string{"", x.account()}), Tier: registry.Tier(x.IntN(4)),
			Hardware: registry.Hardware{Kind: registry.Kind(x.IntN(4)), Memory: x.Uint64N(64 << 10), Upload: x.Uint64N(100_000), Region: pick(x, []string{"eu", "us"}), Domain: strconv.Itoa(x.IntN(5))},
		})
	case 10:
		return c.Unstake(ctx, x.amount())
	case 11:
		return pick(x, []func() error{
			func() error { return c.Offer(ctx, x.role(), x.Uint64N(1500), x.Uint32N(4)) },
			func() error { return c.OfferHourly(ctx, x.role(), x.amount(), 1) },
			func() error { return c.OfferPool(ctx, x.Uint64N(1500), x.Uint32N(3)) },
		})()
	case 13, 14:
		return x.order(ctx, c)
	case 15:
		return pick(x, []func() error{
			func() error { return c.CancelOrder(ctx, x.job()) }, func() error { return c.PauseJob(ctx, x.job()) },
			func() error { return c.ResumeJob(ctx, x.job()) }, func() error { return c.TopUpJob(ctx, x.job(), x.amount()) },
		})()
	case 16:
		return pick(x, []func() error{
			func() error { return c.Heartbeat(ctx) }, func() error { return c.UpdateAddresses(ctx, "peer", []string{"/ip4/10.0.0.1"}) },
			func() error { return c.AskMeasure(ctx, x.Uint32N(1<<21)) }, func() error { return c.AnswerMeasure(ctx, x.digest()) },
			func() error { return c.CheckMeasure(ctx, x.account(), x.digest()) },
		})()
	case 17:
		return pick(x, []func() error{
			func() error {
				return c.ReportPeer(ctx, x.job(), x.account(), registry.Link{Bytes: x.amount(), Millis: x.amount(), RTT: x.Uint32N(200)})
			},
			func() error { return c.PayRevenue(ctx, x.job(), x.amount()) }, func() error { return c.ClaimRevenue(ctx, x.job()) },
		})()
	}
	return x.work(ctx, c)
}

// propose proposes other rules, or to spend of the community pool.
func (x *chaos) propose(submit func(sdk.Msg) error, me string) error {
	p := registry.DefaultParams()
	p.EpochBlocks, p.BeatBlocks, p.MeasureBlocks, p.UnstakeBlocks = 5*x.Int64N(6), 1+x.Int64N(5), 1+x.Int64N(10), 1+x.Int64N(20)
	rules := []sdk.Msg{
		&registrypb.MsgUpdateParams{Authority: governance, Params: registrypb.FromParams(p)},
		&rewardpb.MsgUpdateParams{Authority: governance, Params: rewardpb.Params{PerEpoch: x.amount(), Halving: x.Uint32N(3), BasePpm: 300_000, WorkPpm: x.Uint32N(900_000), BandwidthPpm: 100_000}},
		&marketpb.MsgUpdateParams{Authority: governance, Params: marketpb.Params{FeePpm: x.Uint32N(1_200_000), PauseBlocks: x.Int64N(30)}},
		&distrtypes.MsgCommunityPoolSpend{Authority: governance, Recipient: x.account(), Amount: x.coins()},
	}
	m, err := govv1.NewMsgSubmitProposal([]sdk.Msg{pick(x, rules)}, adapter.Coins(10_000_000), me, "", "chaos", "chaos", false)
	if err != nil {
		return err
	}
	return submit(m)
}

func (x *chaos) order(ctx context.Context, c *client.Client) error {
	id, limit := "job-"+strconv.Itoa(x.jobs), run.Deadlines{Train: 1 + x.Int64N(6), Audit: 1 + x.Int64N(6), Attest: 1 + x.Int64N(6), Challenge: x.Int64N(5)}
	x.jobs++
	n := 1 + x.Uint32N(3)
	return c.Order(ctx, market.Order{
		ID: id, Budget: 1_000_000 + x.amount(), PriceCap: 300 + x.Uint64N(1200), Workers: market.Workers{Min: n, Target: n + x.Uint32N(2), Max: n + 2}, Verifiers: x.Uint32N(2),
		Deadline: x.height + x.Int64N(40), SharesPPM: x.Uint32N(1_010_000), OnExceed: market.Exceed(x.IntN(2)), Data: pick(x, []string{"", "text"}),
		Conditions: market.Conditions{Domains: x.Uint32N(2), Memory: x.Uint64N(2) * 8192},
		Terms: run.Terms{
			Job: id, Spec: canon.Sum(id), SpecCID: "spec", Genesis: run.Checkpoint{Root: canon.Sum("genesis"), CID: "genesis"}, Rounds: 1 + x.Uint32N(3), Units: 1 + x.Uint32N(4),
			Segments: 2, UnitFlops: 1_000_000_000_000 * (1 + x.Uint64N(2000)), AuditPPM: x.Uint32N(1_000_001), Deadlines: limit, Window: 1 + x.Uint32N(4),
		},
	})
}

// work does, mostly, a duty in a run.
func (x *chaos) work(ctx context.Context, c *client.Client) error {
	jobs, err := c.Runs(ctx, true)
	if err != nil || len(jobs) == 0 {
		return err
	}
	job, me := pick(x, jobs), c.Address()
	s, err := c.Run(ctx, job)
	if err != nil {
		return err
	}
	next := run.Checkpoint{Round: s.Round + 1, Root: canon.Sum("root", []byte{byte(s.Round)}), CID: "checkpoint"}
	switch duties, audits := s.Work(me), s.Audits(me); {
	case x.IntN(12) == 0:
		return pick(x, []func() error{
			func() error { return c.Leave(ctx, job) }, func() error { return c.Return(ctx, job) },
			func() error { return c.Missing(ctx, job, s.Round, x.Uint32N(4), 0, 0) }, func() error { return c.Suspect(ctx, job, s.Round, x.Uint32N(4), 0) },
			func() error { return c.Challenge(ctx, job, s.Round, x.Uint32N(4), 0, x.Uint32N(3), []byte("nonsense")) },
		})()
	case len(duties) > 0:
		u, d := pick(x, duties), canon.Sum("work", []byte(job))
		return c.Commit(ctx, job, s.Round, u.Index, u.Attempt, run.Commitment{Segments: []canon.Digest{d, d, d}, Update: d, UpdateCID: "update", Bytes: x.amount(), Hidden: d})
	case len(audits) > 0:
		d := pick(x, audits)
		return c.Pass(ctx, job, d.Round, d.Index, d.Attempt, canon.Sum("seal"))
	case s.Phase == run.Attest:
		return c.Attest(ctx, s.Attestation(next))
	}
	return nil
}

// play makes blocks, and returns the application hash after the last.
func (x *chaos) play(t *testing.T, blocks int) string {
	t.Helper()
	ctx := t.Context()
	for n := range blocks {
		for _, i := range x.Perm(len(x.names))[:x.IntN(len(x.names))] {
			x.speak(t, ctx, keyOf(x.names[i]))
		}
		for _, v := range x.validators { // agree to most that is proposed
			if id := 1 + x.Uint64N(uint64(n/5+1)); x.IntN(4) > 0 {
				tx := x.sign(t, operator{v}, govv1.NewMsgVote(sdk.AccAddress(v.Operator.PubKey().Address()), id, govv1.OptionYes, ""))
				must(x.check(tx))(t)
			}
		}
		in, err := x.block(ctx, time.Duration(n+1)*time.Second)
		if err != nil {
			t.Fatalf("block %d: %v", x.height, err)
		}
		for _, tx := range in {
			x.tally(tx)
		}
		for _, b := range must(x.queries.Books(ctx))(t) {
			if !b.Balanced() {
				t.Fatalf("block %d: the books are wrong: %+v", x.height, b)
			}
		}
	}
	return fmt.Sprintf("%x", x.appHash)
}

// speak lets an account send one transaction, which may be refused.
func (x *chaos) speak(t *testing.T, ctx context.Context, key *client.Key) {
	c := client.Through(x.connection, key, func(_ context.Context, msgs ...sdk.Msg) (client.Result, error) {
		r := must(x.check(x.sign(t, key, msgs...)))(t)
		return client.Result{}, client.Refusal(r.Codespace, r.Code, r.Log)
	})
	err := x.operation(ctx, c)
	if _, refused := errors.AsType[*client.Error](err); err != nil && !refused {
		t.Fatal(err)
	}
}

func (x *chaos) tally(tx included) {
	decoded, err := x.app.Tx.TxDecoder()(tx.tx)
	if err != nil {
		return
	}
	for _, m := range decoded.GetMsgs() {
		n := x.messages[sdk.MsgTypeURL(m)]
		n[0]++
		if tx.result.Code == 0 {
			n[1]++
		}
		x.messages[sdk.MsgTypeURL(m)] = n
	}
}

// Whatever accounts do, every module accounts for its coins after every block, no rule fails, and the same operations make the
// same state, to the last bit.
func TestRandomOperations(t *testing.T) {
	for s := *seed; s < *seed+*operationSeeds; s++ {
		x := newChaos(t, s)
		hash := x.play(t, *operationBlocks)
		fmt.Printf("operations of seed %d end in %s\n", s, hash)
		if again := newChaos(t, s).play(t, *operationBlocks); again != hash {
			t.Errorf("seed %d ends in %s, and then in %s", s, hash, again)
		}
		executed := 0
		for _, n := range x.messages {
			executed += n[1]
		}
		if executed < *operationBlocks || len(x.messages) < 20 {
			t.Errorf("seed %d: only %d messages of %d types were executed", s, executed, len(x.messages))
		}
		t.Logf("seed %d: tried and executed: %v", s, x.messages)
	}
}

// Another process makes the same state of the same operations.
func TestSameStateInTwoProcesses(t *testing.T) {
	const child, blocks = "STARLING_TEST_CHAOS", 25
	if os.Getenv(child) != "" {
		fmt.Printf("ends in %s\n", newChaos(t, *seed).play(t, blocks))
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSameStateInTwoProcesses$", "-seed", strconv.FormatUint(*seed, 10))
	cmd.Env = append(os.Environ(), child+"=1", "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if hash := newChaos(t, *seed).play(t, blocks); !strings.Contains(string(out), "ends in "+hash) {
		t.Errorf("this process ends in %s, another:\n%s", hash, out)
	}
}
