package market

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cosmossdk.io/collections"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// surroundings is a registry, a beacon and runs for tests without any run.
type surroundings struct{ stake map[string]uint64 }

func (s surroundings) Get(_ context.Context, id string) (registry.Participant, error) {
	return registry.Participant{ID: id, Roles: []crew.Role{crew.Worker}, Stake: s.stake[id]}, nil
}
func (surroundings) Lead(_ context.Context, p registry.Participant) (registry.Participant, error) {
	return p, nil
}
func (surroundings) Params(context.Context) (registry.Params, error) {
	return registry.DefaultParams(), nil
}
func (surroundings) Members(context.Context, string) ([]string, error) { return nil, nil }
func (surroundings) Verifiers(context.Context, canon.Digest, func(registry.Participant) (bool, error)) error {
	return nil
}
func (surroundings) Pay(context.Context, string, string, coin.Coin, uint64) error { return nil }

func (surroundings) Backing(context.Context, registry.Participant) (uint64, error) { return 0, nil }
func (surroundings) At(context.Context, int64) (canon.Digest, error) {
	return canon.Sum("beacon"), nil
}
func (surroundings) Start(context.Context, terms.Terms, []crew.Member) error {
	return errors.New("none")
}
func (surroundings) Turn(context.Context, collections.Item[string], int) ([]string, error) {
	return nil, nil
}
func (surroundings) State(context.Context, string) (run.State, error)                 { return run.State{}, nil }
func (surroundings) Join(context.Context, string, []crew.Member) error                { return nil }
func (surroundings) Feed(context.Context, string, uint32, canon.Digest, string) error { return nil }
func (surroundings) Admit(context.Context, string, terms.Terms, []byte, uint32) error { return nil }
func (surroundings) Forget(context.Context, canon.Digest) error                       { return nil }

// empty returns a keeper over an empty store, at height 9.
func empty(t *testing.T, around surroundings) (*Keeper, sdk.Context) {
	service, ctx := storetest.Open(t, Name)
	k, err := NewKeeper(service, nil, "", nil, nil, around, nil, around)
	if err != nil {
		t.Fatal(err)
	}
	k.Connect(around)
	return k, ctx.WithBlockHeight(9)
}

// block returns the gas of the reads and writes at the end of a block.
func block(t *testing.T, k *Keeper, ctx sdk.Context) uint64 {
	t.Helper()
	meter := storetypes.NewInfiniteGasMeter()
	if err := k.EndBlock(ctx.WithGasMeter(meter)); err != nil {
		t.Fatal(err)
	}
	return uint64(meter.GasConsumed())
}

func waitingOrder(id string, budget uint64) market.Order {
	return market.Order{ID: id, Consumer: "carol", Budget: budget, Workers: market.Workers{Min: 1, Target: 1, Max: 1},
		Terms: terms.Terms{Job: id, Rounds: 1, Units: 1}}
}

func open(t *testing.T, k *Keeper, ctx sdk.Context, o market.Order) {
	t.Helper()
	if err := errors.Join(k.jobs.Set(ctx, o.ID, Job{Order: o, Status: Open}), k.open.enter(ctx, o)); err != nil {
		t.Fatal(err)
	}
}

// Fifteen hundred open orders that cannot be matched cost a block no more than a hundred, and each has its turn.
func TestOpenOrdersOfStrangersDoNotHoldUpABlock(t *testing.T) {
	cost := map[int]uint64{}
	for _, n := range []int{100, 1500} {
		k, ctx := empty(t, surroundings{})
		for i := range n {
			open(t, k, ctx, waitingOrder(fmt.Sprintf("job-%04d", i), 1))
		}
		open(t, k, ctx, waitingOrder("honest", 1_000_000)) // has the largest budget
		cost[n] = block(t, k, ctx)
		if job, _ := k.Job(ctx, "honest"); job.Why == "" {
			t.Errorf("of %d orders the one that has locked the most was not tried", n)
		}
		for range n/maxTried + 1 {
			block(t, k, ctx)
		}
		for i := range n {
			if job, _ := k.Job(ctx, fmt.Sprintf("job-%04d", i)); job.Why == "" {
				t.Fatalf("order %d of %d had no turn", i, n)
			}
		}
	}
	if cost[1500] > cost[100]+cost[100]/10 {
		t.Errorf("a block costs %d with 1500 open orders, %d with 100", cost[1500], cost[100])
	}
}

// An offer whose account has withdrawn its stake is read once and removed.
func TestOffersWithoutStakeAreTakenAway(t *testing.T) {
	around := surroundings{stake: map[string]uint64{"staked": registry.DefaultParams().MinStake(crew.Worker)}}
	k, ctx := empty(t, around)
	for _, id := range []string{"gone", "pool", "staked"} {
		o := market.Offer{ID: id, Role: crew.Worker, Price: 1 << 40, Slots: 1, Pool: id == "pool"}
		if err := k.offers.Set(ctx, collections.Join(uint32(crew.Worker), id), o); err != nil {
			t.Fatal(err)
		}
	}
	open(t, k, ctx, waitingOrder("job", 5))
	block(t, k, ctx)
	var left []string
	if err := k.offers.Walk(ctx, nil, func(key offerKey, _ market.Offer) (bool, error) {
		left = append(left,
			key.K2())
		return false, nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0] != "staked" {
		t.Errorf("offers of %v are left", left)
	}
}

// The price of its seat counts against the stake of a member, not the price cap of an order, which may be very high.
func TestACapThatCostsNothingTakesNobodysCover(t *testing.T) {
	k, ctx := empty(t, surroundings{})
	o := waitingOrder("job", 5)
	o.PriceCap, o.Terms.UnitFlops, o.Terms.AuditPPM = 1<<63, cost.Flops, 1_000_000
	if err := k.engage(ctx, o, []crew.Member{{ID: "w", Role: crew.Worker, Price: 7}}); err != nil {
		t.Fatal(err)
	}
	engaged, err := k.engagements(ctx)
	if e := engaged[role{crew.Worker, "w"}]; err != nil || e.runs != 1 || e.value != o.Value(crew.Worker, 7) ||
		e.value != 10 {
		t.Errorf("%+v, %v", e, err)
	}
}

// The longest name of a job fits into the token of its model's shares.
func TestNamesHaveABound(t *testing.T) {
	if !nameable(strings.Repeat("a", MaxName)) || nameable(strings.Repeat("a", MaxName+1)) {
		t.Error("names are bounded elsewhere")
	}
	if err := sdk.ValidateDenom("model/" + strings.Repeat("a", MaxName)); err != nil {
		t.Error(err)
	}
}
