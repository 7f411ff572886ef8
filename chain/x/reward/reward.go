// Package reward makes the payments that do not come from jobs: the emission of every epoch, and the revenue of models
// for the holders of their shares. It has the rules of protocol/reward for both on the chain. x/training pays for jobs.
package reward

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Name of the module, its store, its account and its codespace. The account mints the coins of the emission, and holds
// the unclaimed revenue.
const Name = "reward"

// Errors of the module, in addition to those of protocol/reward.
var (
	ErrMember  = errors.New("reward: not a member of this run")
	ErrNoModel = errors.New("reward: no account holds shares of such a model")
	ErrFunds   = errors.New("reward: the account cannot pay the revenue")
	ErrAmount  = errors.New("reward: not an amount")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: ErrMember, Fix: "Report about members of a run that you are a member of, before it ends."},
	{Code: 3, Rule: registry.ErrReport, Fix: "Report what was measured, at most 2^50 bytes at once."},
	{Code: 4, Rule: ErrNoModel, Fix: "Check the name of the job; shares are granted when its run ends, if its order " +
		"grants any."},
	{Code: 5, Rule: ErrFunds, Fix: "Fund the account or pay less."},
	{Code: 6, Rule: ErrAmount, Fix: "Give an amount above 0, and below 2^53 in the smallest units of the coin."},
	{Code: 7, Rule: reward.ErrSchedule, Fix: "Correct the schedule of the proposal."},
	{Code: 8, Rule: adapter.ErrAuthority, Fix: "Make a proposal of governance."},
	{Code: 9, Rule: coin.ErrCoin, Fix: "Name a coin of the network: starling market coins."},
}}

// Bank moves and makes coins.
type Bank interface {
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, module string, amount sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress, amount sdk.Coins) error
	MintCoins(ctx context.Context, module string, amount sdk.Coins) error
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
}

// Pool is the community pool.
type Pool interface {
	DistributeFromFeePool(ctx context.Context, amount sdk.Coins, to sdk.AccAddress) error
	Available(ctx context.Context) (uint64, error) // uzen
}

// Registry knows the uptimes and presences of participants, and holds their stakes.
type Registry interface {
	Presences(ctx context.Context) (map[string]registry.Presence, error)
	Get(ctx context.Context, id string) (registry.Participant, error)
	Params(ctx context.Context) (registry.Params, error)
	Uptimes(ctx context.Context) (map[string]registry.Uptime, error)
	Turn(ctx context.Context, height int64, latency map[string]uint32, cluster map[string]string) error
	Take(ctx context.Context, id, to string, amount uint64) error
	Payee(ctx context.Context, id string) (sdk.AccAddress, error)
	Owner(ctx context.Context, id string) (string, error)
}

// Catalog knows the works that a model was made from, and the shares that are offered for coins.
type Catalog interface {
	// Split divides revenue of a model: its own part is the first.
	Split(ctx context.Context, job string, amount uint64) ([]catalog.Payment, error)
	// Shares are the shares of a model that an account owns, which has a balance of its tokens.
	Shares(ctx context.Context, job string, account sdk.AccAddress, balance uint64) (uint64, error)
}

// Coins are the coins of the network.
type Coins interface {
	Find(ctx context.Context, denom string) (coin.Registered, error)
}

// Runs stores the states of runs. Orders stores the orders of jobs, and the offers of verifiers.
type (
	Runs interface {
		State(ctx context.Context, job string) (run.State, error)
	}
	Orders interface {
		Ordered(ctx context.Context, job string) (market.Order, error)
		Audits(ctx context.Context, id string, price uint64) (bool, error)
	}
)

// Keeper reads and writes the data of the current epoch, the receipts of earlier epochs, and the shares of models.
type Keeper struct {
	Schema collections.Schema

	authority string
	bank      Bank
	pool      Pool
	registry  Registry
	orders    Orders
	coins     Coins
	runs      Runs
	catalog   Catalog

	params collections.Item[reward.Schedule]
	worked collections.Map[string, work] // paid in this epoch, by account
	// bytes that an account has committed to serve in this epoch
	serves   collections.Map[string, uint64]
	links    collections.Map[collections.Pair[string, string], registry.Link] // of this epoch: reported peer, reporter
	receipts collections.Map[receiptKey, reward.Receipt]
	books    collections.Map[collections.Pair[string, uint64], entry] // the same receipts by their Job field
	// operations paid in a run whose order grants shares: job, account
	earned collections.Map[collections.Pair[string, string], uint64]
	revenues
}

// receiptKey is account, height, job and number. The height is negative, so that the latest receipts are first.
type receiptKey = collections.Quad[string, int64, string, uint64]

// entry locates a receipt of a book.
type entry struct {
	Who    string `cbor:"1,keyasint"`
	Height int64  `cbor:"2,keyasint"`
}

// Issue stores a receipt.
func (k *Keeper) Issue(ctx context.Context, r reward.Receipt) error {
	return errors.Join(
		k.receipts.Set(ctx, collections.Join4(r.Who, -r.Height, r.Job, r.Seq), r),
		k.books.Set(ctx, collections.Join(r.Job, r.Seq), entry{r.Who, r.Height}),
	)
}

// NewKeeper returns a keeper over its own store. Connect completes it.
func NewKeeper(s store.KVStoreService, authority string, bank Bank, pool Pool, registrar Registry,
	orders Orders, coins Coins) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	id := collections.StringKey
	pair := collections.PairKeyCodec(id, id)
	k := &Keeper{
		authority: authority, bank: bank, pool: pool, registry: registrar, orders: orders,
		coins:  coins,
		params: collections.NewItem(b, collections.NewPrefix(0), "params", adapter.Record[reward.Schedule]()),
		worked: collections.NewMap(b, collections.NewPrefix(1), "worked", id, adapter.Record[work]()),
		serves: collections.NewMap(b, collections.NewPrefix(2), "serves", id, collections.Uint64Value),
		links:  collections.NewMap(b, collections.NewPrefix(3), "links", pair, adapter.Record[registry.Link]()),
		receipts: collections.NewMap(b, collections.NewPrefix(4), "receipts",
			collections.QuadKeyCodec(id, collections.Int64Key, id, collections.Uint64Key), adapter.Record[reward.Receipt]()),
		books: collections.NewMap(b, collections.NewPrefix(8), "books",
			collections.PairKeyCodec(id, collections.Uint64Key), adapter.Record[entry]()),
		earned:   collections.NewMap(b, collections.NewPrefix(5), "earned", pair, collections.Uint64Value),
		revenues: newRevenues(b),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// Connect sets the modules of runs and of listings, which themselves need the keeper.
func (k *Keeper) Connect(runs Runs, works Catalog) { k.runs, k.catalog = runs, works }

// Params are the parameters in force.
func (k *Keeper) Params(ctx context.Context) (reward.Schedule, error) {
	s, err := k.params.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return reward.DefaultSchedule(), nil
	}
	return s, err
}

// UpdateParams implements rewardpb.MsgServer.
func (k *Keeper) UpdateParams(ctx context.Context,
	m *rewardpb.MsgUpdateParams) (*rewardpb.MsgUpdateParamsResponse, error) {
	if err := adapter.OnlyBy(k.authority, m.Authority); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	s := reward.Schedule{
		PerEpoch: m.Params.PerEpoch, Halving: m.Params.Halving,
		BasePPM: m.Params.BasePpm, WorkPPM: m.Params.WorkPpm, BandwidthPPM: m.Params.BandwidthPpm,
	}
	if err := s.Validate(); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &rewardpb.MsgUpdateParamsResponse{}, k.params.Set(ctx, s)
}

// add adds n to a count. It saturates, far above any real count.
func add[K any](ctx context.Context, m collections.Map[K, uint64], key K, n uint64) error {
	old, err := m.Get(ctx, key)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	return m.Set(ctx, key, max(old+n, old))
}

// work is the work of an account that was paid in an epoch.
type work struct {
	Flops uint64 `cbor:"1,keyasint"`
	Fees  uint64 `cbor:"2,keyasint"` // uzen
}

// Paid records that work in a run was verified and paid, with a fee in uzen.
func (k *Keeper) Paid(ctx context.Context, job, who string, flops, fee uint64) error {
	w, err := k.worked.Get(ctx, who)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	w = work{Flops: max(w.Flops+flops, w.Flops), Fees: w.Fees + fee} // the fees cannot overflow: there are fewer coins
	if err := k.worked.Set(ctx, who, w); err != nil {
		return err
	}
	o, err := k.orders.Ordered(ctx, job)
	if err != nil || o.SharesPPM == 0 {
		return err
	}
	return add(ctx, k.earned, collections.Join(job, who), flops)
}

// Committed records that a worker committed to an update of a size in bytes, which the other members fetch from it.
func (k *Keeper) Committed(ctx context.Context, who string, bytes uint64) error {
	return add(ctx, k.serves, who, bytes)
}

// Report implements rewardpb.MsgServer. The bytes that a peer sends to one member count up to the bytes that the peer
// committed to serve.
func (k *Keeper) Report(ctx context.Context, m *rewardpb.MsgReport) (*rewardpb.MsgReportResponse, error) {
	s, err := k.runs.State(ctx, m.Job)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %w", ErrMember, err))
	}
	for _, id := range []string{m.Sender, m.Peer} {
		if _, ok := s.Member(id); !ok || m.Sender == m.Peer || s.Phase == progress.Done || s.Phase == progress.Halted {
			return nil, ErrorTable.Wrap(fmt.Errorf("%w: %s of %s", ErrMember, id, m.Job))
		}
	}
	key := collections.Join(m.Peer, m.Sender)
	l, err := k.links.Get(ctx, key)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	serves, err := k.serves.Get(ctx, m.Peer)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	l, err = l.Report(registry.Link{Bytes: m.Bytes, Millis: m.Millis, RTT: m.Rtt}, serves-min(serves, l.Bytes))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &rewardpb.MsgReportResponse{}, k.links.Set(ctx, key, l)
}
