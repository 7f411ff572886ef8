package chain

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/libs/protoio"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/training/works"
)

// council is a chain of several validators in one application. The test proposes its blocks.
type council struct {
	*testing.T
	db     dbm.DB
	app    *app.App
	keys   []identity.Keys
	start  time.Time
	height int64
	commit abci.ExtendedCommitInfo

	referee works.Referee // nil: that of the chain
}

func newCouncil(t *testing.T, n int) *council {
	t.Helper()
	c := &council{T: t, db: dbm.NewMemDB(), start: time.Unix(1_000_000_000, 0)}
	c.seat(n)
	doc, err := Genesis("test", c.start, c.keys, []Funded{{Address: c.keys[0].Address(), Amount: 1}})
	c.must(err)
	c.app = c.open()
	c.begin(c.app, doc)
	return c
}

// seat makes the keys of n validators.
func (c *council) seat(n int) {
	for i := range n {
		c.keys = append(c.keys, identity.NewKeys(canon.Sum("council", []byte{byte(i)})))
	}
}

// begin initializes an application with the genesis.
func (c *council) begin(a *app.App, doc *cmttypes.GenesisDoc) {
	c.Helper()
	params := doc.ConsensusParams.ToProto()
	_, err := a.InitChain(&abci.RequestInitChain{
		ChainId: "test", Time: doc.GenesisTime, InitialHeight: 1, ConsensusParams: &params, AppStateBytes: doc.AppState,
	})
	c.must(err)
}

func (c *council) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *council) open() *app.App {
	a, err := app.New(log.NewNopLogger(), c.db, app.Config{ChainID: "test", Simulated: true, Referee: c.referee})
	c.must(err)
	return a
}

// finalize proposes a block over an extended commit and, if the application accepts the block, executes it. It returns
// the beacon of the block.
func (c *council) finalize(a *app.App, commit abci.ExtendedCommitInfo,
	said abci.CommitInfo) (value string, accepted bool) {
	c.Helper()
	height, at, proposer := c.height+1, c.start.Add(time.Duration(c.height)*time.Second),
		c.keys[0].Consensus.PubKey().Address()
	var txs [][]byte
	if height > 1 {
		b, err := commit.Marshal()
		c.must(err)
		txs = [][]byte{b}
	}
	hash := canon.Sum("block", fmt.Append(nil, height))
	r, err := a.ProcessProposal(&abci.RequestProcessProposal{Txs: txs, ProposedLastCommit: said, Hash: hash[:],
		Height: height, Time: at, ProposerAddress: proposer})
	c.must(err)
	if r.Status != abci.ResponseProcessProposal_ACCEPT {
		return "", false
	}
	done, err := a.FinalizeBlock(&abci.RequestFinalizeBlock{Txs: txs, DecidedLastCommit: said, Hash: hash[:],
		Height: height, Time: at, ProposerAddress: proposer})
	c.must(err)
	for _, e := range done.Events {
		for _, attribute := range e.Attributes {
			if e.Type == "starling.beacon.v1.EventBeacon" && attribute.Key == "value" {
				value = attribute.Value
			}
		}
	}
	return value, true
}

// next makes a block from the votes of all validators, and all validators vote on it.
func (c *council) next() string {
	c.Helper()
	value, ok := c.finalize(c.app, c.commit, cast(c.commit))
	if !ok {
		c.Fatalf("block %d is refused", c.height+1)
	}
	hash := canon.Sum("block", fmt.Append(nil, c.height+1))
	commit := abci.ExtendedCommitInfo{}
	for _, k := range c.keys {
		address := k.Consensus.PubKey().Address()
		r, err := c.app.ExtendVoteOf(c.Context(), app.Validator{Address: address, VRF: k.VRF},
			&abci.RequestExtendVote{Height: c.height + 1, Hash: hash[:]})
		c.must(err)
		ok, err := c.app.VerifyVoteExtension(&abci.RequestVerifyVoteExtension{Height: c.height + 1, Hash: hash[:],
			ValidatorAddress: address, VoteExtension: r.VoteExtension})
		if err != nil || ok.Status != abci.ResponseVerifyVoteExtension_ACCEPT {
			c.Fatalf("a right vote on block %d is refused (%v)", c.height+1, err)
		}
		signed, err := protoio.MarshalDelimited(&cmtproto.CanonicalVoteExtension{Extension: r.VoteExtension,
			Height: c.height + 1, ChainId: "test"})
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
	_, err := c.app.Commit()
	c.must(err)
	c.height, c.commit = c.height+1, commit
	return value
}

func cast(c abci.ExtendedCommitInfo) abci.CommitInfo {
	out := abci.CommitInfo{Round: c.Round}
	for _, v := range c.Votes {
		out.Votes = append(out.Votes, abci.VoteInfo{Validator: v.Validator, BlockIdFlag: v.BlockIdFlag})
	}
	return out
}

// without returns an extended commit whose proposer claims that the validators at the indices gone did not vote.
func without(c abci.ExtendedCommitInfo, gone ...int) abci.ExtendedCommitInfo {
	c.Votes = slices.Clone(c.Votes)
	for _, i := range gone {
		c.Votes[i] = abci.ExtendedVoteInfo{Validator: c.Votes[i].Validator, BlockIdFlag: cmtproto.BlockIDFlagAbsent}
	}
	return c
}

// silent returns an extended commit in which the validators at the indices who voted and added nothing.
func (c *council) silent(commit abci.ExtendedCommitInfo, who ...int) abci.ExtendedCommitInfo {
	commit.Votes = slices.Clone(commit.Votes)
	for _, i := range who {
		v := &commit.Votes[i]
		at := slices.IndexFunc(c.keys, func(k identity.Keys) bool {
			return bytes.Equal(k.Consensus.PubKey().Address(),
				v.Validator.Address)
		})
		signed, err := protoio.MarshalDelimited(&cmtproto.CanonicalVoteExtension{Height: c.height, ChainId: "test"})
		c.must(err)
		v.VoteExtension = nil
		v.ExtensionSignature, err = c.keys[at].Consensus.Sign(signed)
		c.must(err)
	}
	return commit
}

// signs makes blocks until a group signs the votes, at height 8.
func (c *council) signs() {
	c.Helper()
	for c.height < 8 {
		c.next()
	}
}

// A proposer leaves out the votes of any third of the validators, or lets the validators that it owns, up to a third,
// add nothing to their votes: the beacon stays the same.
func TestAProposerCannotChooseTheBeacon(t *testing.T) {
	t.Parallel()
	sizes := []int{1, 4}
	if *Long {
		sizes = append(sizes, 10, 21)
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := newCouncil(t, n)
			random := rand.New(rand.NewPCG(uint64(n), 0))
			third := (n - 1) / 3
			values := func(tries int) map[string]bool {
				seen := map[string]bool{}
				for try := range tries {
					gone := random.Perm(n)
					own := gone[third:min(2*third, n)]
					gone = gone[:min(third, try)]
					commit := c.silent(without(c.commit, gone...), own...)
					value, ok := c.finalize(c.open(), commit, cast(commit))
					if !ok {
						t.Fatalf("the block without %v is refused", gone)
					}
					seen[value] = true
				}
				return seen
			}
			for c.height < 3 {
				c.next()
			}
			if n == 4 { // before the first group exists, a proposer can choose
				if got := values(6); len(got) < 3 {
					t.Errorf("before there is a group, a proposer chooses among %d beacons", len(got))
				}
			}
			c.signs()
			for range 2 {
				c.next()
				got := values(5)
				if len(got) != 1 || got[canon.Digest{}.String()] || got[""] {
					t.Errorf("a proposer of %d validators chooses among the beacons %v", n, got)
				}
			}
			before := map[string]bool{}
			for range 3 {
				v := c.next()
				if before[v] {
					t.Errorf("the beacon %s comes twice", v)
				}
				before[v] = true
			}
		})
	}
}

// The extended commit must contain every vote that the last commit of the block counts.
func TestAProposerCannotHideWhatAVoteSays(t *testing.T) {
	c := newCouncil(t, 4)
	c.signs()
	if _, ok := c.finalize(c.app, without(c.commit, 1), cast(c.commit)); ok {
		t.Error("a block is accepted that leaves out a vote which it says was cast")
	}
	if _, ok := c.finalize(c.app, without(c.commit, 1, 2), cast(without(c.commit, 1, 2))); ok {
		t.Error("a block is accepted with the votes of half")
	}
}

// A process that restarts with only the state computes the same beacon of a group.
func TestTheBeaconSurvivesARestart(t *testing.T) {
	c := newCouncil(t, 4)
	c.signs()
	c.next()
	c.app = c.open()
	want, ok := c.finalize(c.open(), c.commit, cast(c.commit))
	if got := c.next(); !ok || got != want || got == (canon.Digest{}).String() {
		t.Errorf("the beacon is %s, of another process %s", got, want)
	}
	if got := c.next(); got == (canon.Digest{}).String() { // signed after the restart
		t.Error("after a restart there is no beacon")
	}
}
