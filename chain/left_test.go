package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/libs/protoio"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/client/tx"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	xmarket "github.com/starling-network/starling/chain/x/market"
	xregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// court is a chain of validators, each with its own application and pool, on which workers and verifiers have disputes.
type court struct {
	*council
	apps    []*app.App
	pools   [][][]byte // transactions that wait, by validator, in the order of their arrival
	parties []*secp256k1.PrivKey
	coming  []arrival
	events  []abci.Event // of the latest block
	failed  int          // transactions of the latest block that failed
	random  *rand.Rand
	during  func()                                       // called between the next proposal and the votes on it
	delay   func(validator int) int64                    // blocks that a transaction takes to a validator; nil: none
	censor  func(validator int, tx []byte) (leaves bool) // whether a validator leaves out a transaction; nil: none does
}

// arrival is a transaction on its way to a validator.
type arrival struct {
	at        int64
	validator int
	tx        []byte
}

// caseOf is a referee that never recomputes anything: these disputes only test long descents.
type caseOf struct{}

func (caseOf) Decidable(uint64) (uint64, error) { return 0, nil }

func (caseOf) Bound(terms.Terms) error { return nil }

func (caseOf) Bases() []canon.Digest { return nil }

func (caseOf) Parts(dispute.Claim) uint64 { return 1 }

func (caseOf) Judge(dispute.Claim, []byte) (dispute.Ruling, error) {
	return dispute.Ruling{}, errors.New("nothing to see")
}

func (caseOf) Refute(work.Combination, []byte) (string, error) {
	return "", errors.New("nothing to see")
}

func (caseOf) Config(job string, d work.AuditTarget, challenger string, blocks int64) (dispute.Config, error) {
	return dispute.Config{
		Job: job, Round: d.Round, Unit: d.Index, Attempt: d.Attempt, Asserter: d.Worker, Challenger: challenger,
		Base:     d.Base.Root,
		Segments: d.Commit.Segments, Update: d.Commit.Update, Steps: []uint32{1 << 20}, Operators: 1, Parameters: 1,
		MoveBlocks: blocks,
	}, nil
}

// loaders is the number of accounts that take no part in a dispute.
const loaders = 4

// newCourt starts a chain with a run of as many workers as verifiers (pairs), and two units of each worker that wait
// for their audits.
func newCourt(t *testing.T, n, pairs int) *court {
	t.Helper()
	c := &court{council: &council{T: t, start: time.Unix(1_000_000_000, 0)}, random: rand.New(rand.NewPCG(7, 7)),
		pools: make([][][]byte, n)}
	c.referee = func(canon.Digest, []byte, uint32) (works.Case, error) { return caseOf{}, nil }
	c.seat(n)
	var funded []Funded
	var members []crew.Member
	for i := range 2*pairs + loaders {
		key := &secp256k1.PrivKey{Key: secp256k1.GenPrivKeyFromSecret([]byte{byte(i)}).Key}
		c.parties = append(c.parties, key)
		address := sdk.AccAddress(key.PubKey().Address()).String()
		funded = append(funded, Funded{Address: address, Amount: 1_000_000})
		if i >= 2*pairs {
			continue
		}
		members = append(members, crew.Member{ID: address, Role: crew.Role(1 + i%2), Price: 1, Stake: 1_000_000})
	}
	doc, err := Genesis("test", c.start, c.keys, funded)
	c.must(err)
	doc.AppState = c.disputable(doc.AppState, members, 2*pairs)
	for range n {
		a, err := app.New(
			log.NewNopLogger(),
			dbm.NewMemDB(),
			app.Config{ChainID: "test", Simulated: true, Referee: c.referee},
		)
		c.must(err)
		c.begin(a, doc)
		c.apps = append(c.apps, a)
	}
	c.app = c.apps[0]
	return c
}

// disputable adds to the genesis state of a chain a run in which every worker has committed to its units.
func (c *court) disputable(raw json.RawMessage, members []crew.Member, units int) json.RawMessage {
	c.Helper()
	slices.SortFunc(members, func(a, b crew.Member) int { return bytes.Compare([]byte(a.ID), []byte(b.ID)) })
	all := terms.Terms{
		Job: "job", Spec: canon.Sum("spec"), SpecCID: "spec",
		Genesis: terms.Checkpoint{Root: canon.Sum("genesis"), CID: "genesis"}, Rounds: 2,
		Units: uint32(units), Segments: 1, UnitFlops: 1000, AuditPPM: 1_000_000, Window: 2,
		Deadlines: terms.Deadlines{Train: 10, Audit: 6, Attest: 10_000, Challenge: 10_000},
	}
	s, err := run.New(all, members, 0)
	c.must(err)
	env := transition.Env{Height: 1, Beacon: canon.Sum("dealt")}
	s, _ = s.Tick(env)
	for _, u := range s.Units {
		d := canon.Sum("commitment", []byte(u.Worker))
		s, _, err = s.Commit(env, u.Worker, work.UnitID{Unit: u.Index, Attempt: u.Attempt}, work.Commitment{
			Segments: []canon.Digest{d, d}, Update: d, UpdateCID: "update", Bytes: 1, Log: "log", HiddenRoots: d,
		})
		c.must(err)
	}
	s, _ = s.Tick(transition.Env{Height: 2, Beacon: canon.Sum("drawn")})
	type entry struct {
		Key   any `json:"key"`
		Value any `json:"value"`
	}
	var state map[string]json.RawMessage
	c.must(json.Unmarshal(raw, &state))
	var participants []entry
	for _, m := range members {
		participants = append(participants,
			entry{m.ID, registry.Participant{ID: m.ID, Roles: []crew.Role{m.Role}, PeerID: "peer", Stake: m.Stake}})
	}
	o := market.Order{ID: "job", Consumer: members[0].ID, Terms: all, Budget: 1 << 40, PriceCap: 1}
	put := func(name string, v any) {
		state[name], err = json.Marshal(v)
		c.must(err)
	}
	put(xregistry.Name, map[string][]entry{"participants": participants})
	put(xmarket.Name, map[string][]entry{
		"jobs":    {{o.ID, xmarket.Job{Order: o, Status: xmarket.Running}}},
		"escrows": {{o.ID, market.Escrow{Budget: o.Budget}}},
	})
	state[training.Name], err = training.Genesis(map[canon.Digest][]byte{all.Spec: []byte("opening")}, s)
	c.must(err)
	whole, err := json.Marshal(state)
	c.must(err)
	return whole
}

// ask queries the application of the first validator.
func (c *court) ask(path string, question interface{ Marshal() ([]byte, error) },
	answer interface{ Unmarshal([]byte) error }) {
	c.Helper()
	b, err := question.Marshal()
	c.must(err)
	r, err := c.apps[0].Query(c.Context(), &abci.RequestQuery{Path: path, Data: b})
	if err != nil || r.Code != 0 {
		c.Fatalf("%s: %v (%v)", path, r.GetLog(), err)
	}
	c.must(answer.Unmarshal(r.Value))
}

func (c *court) games() (games []dispute.Dispute) {
	c.Helper()
	var r trainingpb.QueryDisputesResponse
	c.ask("/starling.training.v1.Query/Disputes", &trainingpb.QueryDisputesRequest{Job: "job"}, &r)
	for _, b := range r.Games {
		var g dispute.Dispute
		c.must(canon.Unmarshal(b, &g))
		games = append(games, g)
	}
	return games
}

func (c *court) state() run.State {
	c.Helper()
	var r trainingpb.QueryRunResponse
	c.ask("/starling.training.v1.Query/Run", &trainingpb.QueryRunRequest{Job: "job"}, &r)
	var s run.State
	c.must(canon.Unmarshal(r.State, &s))
	return s
}

// sign makes the next transaction of an account.
func (c *court) sign(account string, m sdk.Msg) []byte {
	c.Helper()
	var info authtypes.QueryAccountInfoResponse
	c.ask("/cosmos.auth.v1beta1.Query/AccountInfo", &authtypes.QueryAccountInfoRequest{Address: account}, &info)
	at := slices.IndexFunc(c.parties,
		func(k *secp256k1.PrivKey) bool { return sdk.AccAddress(k.PubKey().Address()).String() == account })
	key, sequence := c.parties[at], info.Info.Sequence
	b := c.app.Tx.NewTxBuilder()
	c.must(b.SetMsgs(m))
	b.SetGasLimit(12_300_000 + 48*uint64(m.(interface{ Size() int }).Size())) // the gas that clients declare
	const mode = signing.SignMode_SIGN_MODE_DIRECT
	s := signing.SignatureV2{PubKey: key.PubKey(), Sequence: sequence, Data: &signing.SingleSignatureData{SignMode: mode}}
	c.must(b.SetSignatures(s))
	signer := authsigning.SignerData{Address: account, ChainID: "test", PubKey: key.PubKey(),
		AccountNumber: info.Info.AccountNumber, Sequence: sequence}
	s, err := tx.SignWithPrivKey(c.Context(), mode, signer, b, key, c.app.Tx, sequence)
	c.must(err)
	c.must(b.SetSignatures(s))
	raw, err := c.app.Tx.TxEncoder()(b.GetTx())
	c.must(err)
	return raw
}

// send sends a transaction to all validators. It reaches each validator after that validator's delay.
func (c *court) send(tx []byte) {
	c.coming = append(c.coming, c.late(tx)...)
	c.arrive()
}

// late returns the arrivals of a transaction at all validators.
func (c *court) late(tx []byte) (all []arrival) {
	for v := range c.apps {
		blocks := int64(0)
		if c.delay != nil {
			blocks = c.delay(v)
		}
		all = append(all, arrival{c.height + blocks, v, tx})
	}
	return all
}

// arrive lets the validators check the transactions that have reached them, in random order.
func (c *court) arrive() {
	c.random.Shuffle(len(c.coming), func(i, j int) { c.coming[i], c.coming[j] = c.coming[j], c.coming[i] })
	c.coming = slices.DeleteFunc(c.coming, func(a arrival) bool {
		if a.at > c.height {
			return false
		}
		if r, err := c.apps[a.validator].CheckTx(&abci.RequestCheckTx{Tx: a.tx, Type: abci.CheckTxType_New}); err == nil &&
			r.Code == 0 {
			c.pools[a.validator] = append(c.pools[a.validator], a.tx)
		}
		return true
	})
}

// block lets a validator propose a block, which all validators execute and vote on.
func (c *court) block(proposer int) {
	c.Helper()
	height, at, who := c.height+1, c.start.Add(time.Duration(c.height)*time.Second),
		c.keys[proposer].Consensus.PubKey().Address()
	p, err := c.apps[proposer].PrepareProposal(&abci.RequestPrepareProposal{
		MaxTxBytes: MaxBlockBytes - 10_000, Txs: c.pools[proposer], LocalLastCommit: c.commit, Height: height, Time: at,
		ProposerAddress: who,
	})
	c.must(err)
	txs := p.Txs
	if c.censor != nil {
		txs = slices.DeleteFunc(txs, func(tx []byte) bool { return c.censor(proposer, tx) })
	}
	if during := c.during; during != nil {
		c.during = nil
		during()
	}
	hash, said := canon.Sum("block", fmt.Append(nil, height)), cast(c.commit)
	for _, a := range c.apps {
		r, err := a.ProcessProposal(&abci.RequestProcessProposal{Txs: txs, ProposedLastCommit: said, Hash: hash[:],
			Height: height, Time: at, ProposerAddress: who})
		c.must(err)
		if r.Status != abci.ResponseProcessProposal_ACCEPT {
			c.Fatalf("block %d is refused", height)
		}
	}
	commit := abci.ExtendedCommitInfo{}
	for i, k := range c.keys {
		address := k.Consensus.PubKey().Address()
		r, err := c.apps[i].ExtendVoteOf(c.Context(), app.Validator{Address: address, VRF: k.VRF},
			&abci.RequestExtendVote{Height: height, Hash: hash[:]})
		c.must(err)
		for _, a := range c.apps {
			ok, err := a.VerifyVoteExtension(&abci.RequestVerifyVoteExtension{Height: height, Hash: hash[:],
				ValidatorAddress: address, VoteExtension: r.VoteExtension})
			if err != nil || ok.Status != abci.ResponseVerifyVoteExtension_ACCEPT {
				c.Fatalf("a right vote on block %d is refused (%v)", height, err)
			}
		}
		signed, err := protoio.MarshalDelimited(&cmtproto.CanonicalVoteExtension{Extension: r.VoteExtension, Height: height,
			ChainId: "test"})
		c.must(err)
		signature, err := k.Consensus.Sign(signed)
		c.must(err)
		commit.Votes = append(commit.Votes, abci.ExtendedVoteInfo{
			Validator: abci.Validator{Address: address, Power: identity.SelfStake / 1_000_000}, VoteExtension: r.VoteExtension,
			ExtensionSignature: signature, BlockIdFlag: cmtproto.BlockIDFlagCommit,
		})
	}
	slices.SortFunc(commit.Votes, func(a, b abci.ExtendedVoteInfo) int {
		return bytes.Compare(a.Validator.Address,
			b.Validator.Address)
	})
	for i, a := range c.apps {
		done, err := a.FinalizeBlock(&abci.RequestFinalizeBlock{Txs: txs, DecidedLastCommit: said, Hash: hash[:],
			Height: height, Time: at, ProposerAddress: who})
		c.must(err)
		_, err = a.Commit()
		c.must(err)
		if i == 0 {
			c.events, c.failed = done.Events, 0
			for j, r := range done.TxResults {
				if j > 0 && r.Code != 0 {
					c.failed++
				}
			}
		}
		in := map[string]bool{}
		for _, tx := range txs {
			in[string(tx)] = true
		}
		c.pools[i] = slices.DeleteFunc(c.pools[i], func(tx []byte) bool {
			if in[string(tx)] {
				return true
			}
			r, err := a.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_Recheck})
			return err != nil || r.Code != 0
		})
	}
	c.height, c.commit = height, commit
	c.arrive()
}

// leftOut returns the turns counted against proposers, and the voting power slashed, in the latest block.
func (c *court) leftOut() (turns, slashed int) {
	for _, e := range c.events {
		for _, a := range e.Attributes {
			n, _ := strconv.Atoi(trimmed(a.Value))
			switch {
			case e.Type == "starling.beacon.v1.EventLeftOut" && a.Key == "turns":
				turns = max(turns, n)
			case e.Type == "starling.beacon.v1.EventLeftOut" && a.Key == "slashed":
				slashed += n
			}
		}
	}
	return turns, slashed
}

func trimmed(quoted string) string { return string(bytes.Trim([]byte(quoted), `"`)) }

// tokens returns the tokens of a validator, and whether it is jailed.
func (c *court) tokens(validator int) (uint64, bool) {
	c.Helper()
	var r stakingtypes.QueryValidatorResponse
	account, err := sdk.AccAddressFromBech32(c.keys[validator].Address())
	c.must(err)
	operator := sdk.ValAddress(account).String()
	c.ask("/cosmos.staking.v1beta1.Query/Validator", &stakingtypes.QueryValidatorRequest{ValidatorAddr: operator}, &r)
	return r.Validator.Tokens.Uint64(), r.Validator.Jailed
}

// challenge opens a dispute about a unit, sent by the verifier that audits the unit.
func (c *court) challenge(u work.Unit) {
	c.Helper()
	d := u.Commit.Digest()
	m := &trainingpb.MsgChallenge{Sender: u.Verifier, Job: "job", Unit: u.Index, Attempt: u.Attempt, Segment: 1,
		Commitment: d[:]}
	before, delay := len(c.games()), c.delay
	c.delay = nil
	c.send(c.sign(u.Verifier, m))
	c.block(0)
	c.delay = delay
	if got := len(c.games()); got != before+1 {
		c.Fatalf("%d disputes, wanted %d", got, before+1)
	}
}

// move returns the next move of a dispute over the steps of a unit; nil if the dispute is over.
func (c *court) move(g dispute.Dispute) []byte {
	c.Helper()
	var m dispute.Move
	switch g.Stage {
	case dispute.ShowStates:
		n := len(g.Steps.Boundaries())
		states := make([]canon.Digest, n)
		for i := range states {
			states[i] = canon.Sum("state", []byte(fmt.Sprint(g.Config.Unit, i)))
		}
		m.States = &dispute.States{Digests: states}
	case dispute.PickState:
		m.Pick = &dispute.Pick{}
	default:
		return nil
	}
	return c.sign(g.Mover(), &trainingpb.MsgMove{
		Sender: g.Mover(), Job: "job", Round: g.Config.Round, Unit: g.Config.Unit, Attempt: g.Config.Attempt,
		Body: m.Encode(),
	})
}

// load returns a transaction that takes a sixth of a block, from an account that takes no part in a dispute.
func (c *court) load(i int) []byte {
	address := sdk.AccAddress(c.parties[len(c.parties)-1-i%loaders].PubKey().Address()).String()
	body := dispute.Move{Leaf: &dispute.Leaf{Payload: bytes.Repeat([]byte{byte(i)}, dispute.MaxLeaf-i)}}
	return c.sign(address, &trainingpb.MsgMove{Sender: address, Job: "job", Body: body.Encode()})
}

// A party sends its move in time, and a validator that leaves the move out proposes the last block before the deadline.
// The deadline does not advance for that block, and the next block has the move. The validator leaves out the move in
// each of its turns: after six turns in succession it is slashed, and no other validator is.
func TestWhoLeavesOutMovesPaysAndNobodyLosesByIt(t *testing.T) {
	t.Parallel()
	const censor = 3
	c := newCourt(t, 4, 2)
	for c.height < 8 {
		c.block(int(c.height) % 3)
	}
	c.censor = func(validator int, tx []byte) bool {
		return validator == censor && bytes.Contains(tx, []byte("MsgMove"))
	}
	units := c.state().Units
	victim, moved, slashed := units[0].Worker, 0, 0
	for _, u := range units {
		if u.Worker != victim || slashed > 0 {
			continue
		}
		c.challenge(*u)
		for slashed == 0 {
			games := c.games()
			g := games[len(games)-1]
			tx := c.move(g)
			if tx == nil {
				break
			}
			if g.Mover() != victim {
				c.send(tx)
				c.block(0)
				continue
			}
			for moved == 0 && c.height < g.Deadline-2 {
				c.block(int(c.height) % 3)
			}
			c.during = func() { c.send(tx) } // the block is proposed by then, and the votes on it report the move
			c.block(0)
			c.block(censor)
			if moved == 0 && c.height != g.Deadline {
				t.Fatalf("block %d, the move had time up to %d", c.height, g.Deadline)
			}
			moved++
			turns, now := c.leftOut()
			if slashed = now; turns != moved || (slashed > 0) != (moved == 6) {
				t.Fatalf("turn %d of the proposer is counted as %d, and slashes a power of %d", moved, turns, slashed)
			}
			c.block(1)
			games = c.games()
			if after := games[len(games)-1]; c.failed > 0 || after.Ply() != g.Ply()+1 || after.Stood[0] != g.Stood[0]+1 {
				t.Fatalf("move %d, which one block left out, is lost: %+v", moved, after.Log)
			}
		}
	}
	for v := range c.keys {
		want, away := uint64(identity.SelfStake), v == censor
		if away {
			want = identity.SelfStake / 1000 * 999
		}
		if got, jailed := c.tokens(v); got != want || jailed != away {
			t.Errorf("validator %d has %d of a stake of %d, has lost its vote: %v", v, got, identity.SelfStake, jailed)
		}
	}
}

// Moves reach some validators late, and in another order at each, while other transactions fill the blocks: no honest
// proposer is slashed, and every move is executed.
func TestHonestProposersDoNotPay(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 4, 4)
	for c.height < 8 {
		c.block(int(c.height) % 4)
	}
	units := c.state().Units
	for _, u := range units[:4] {
		c.challenge(*u)
	}
	c.delay = func(int) int64 {
		if c.random.IntN(5) == 0 {
			return 1 + c.random.Int64N(2)
		}
		return 0
	}
	sent := map[string]int64{} // height at which a move was sent, by dispute and ply
	missed, next, last := 0, 4, int64(60)
	if *Long {
		last = 200
	}
	for loaded := 0; c.height < last; {
		open, busy := 0, map[string]bool{}
		for _, g := range c.games() {
			tx := c.move(g)
			if tx == nil {
				continue
			}
			open++
			if busy[g.Mover()] {
				continue
			}
			busy[g.Mover()] = true // one dispute of a party after the other
			if id := fmt.Sprint(g.Config.Unit, " ", g.Ply()); sent[id] == 0 || sent[id] < c.height-6 {
				sent[id] = c.height
				c.coming = append(c.coming, c.late(tx)...)
			}
		}
		if open == 0 {
			if next == len(units) {
				break
			}
			c.challenge(*units[next])
			next++
			continue
		}
		if c.height%5 == 0 && loaded < 12 {
			for range loaders {
				c.coming = append(c.coming, c.late(c.load(loaded))...)
				loaded++
			}
		}
		c.during = c.arrive
		c.block(c.random.IntN(4))
		turns, slashed := c.leftOut()
		if slashed > 0 {
			t.Fatalf("an honest proposer pays in block %d", c.height)
		}
		missed += turns
	}
	t.Logf("%d moves in %d blocks, %d turns counted", len(sent), c.height, missed)
	if len(sent) < 40 || missed == 0 {
		t.Errorf("%d moves, of which %d came late to a proposer: nothing to see", len(sent), missed)
	}
	for v := range c.keys {
		if got, jailed := c.tokens(v); got != identity.SelfStake || jailed {
			t.Errorf("validator %d has %d of a stake of %d, has lost its vote: %v", v, got, identity.SelfStake, jailed)
		}
	}
}
