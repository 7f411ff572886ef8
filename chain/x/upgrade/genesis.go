package upgrade

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"cosmossdk.io/core/appmodule"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	"github.com/cosmos/cosmos-sdk/x/upgrade/types"
)

// The genesis of the module: the planned upgrade, if any; the upgrades done, by height; and the protocol version. The
// SDK's genesis has none of these: an imported chain could run with a version that lacks its upgrades.
const (
	fieldPlan    = "plan"
	fieldDone    = "done"
	fieldVersion = "version"
)

// done is an upgrade that was done.
type done struct {
	Name   string `json:"name"`
	Height int64  `json:"height"`
}

// key is the key of the upgrade in the store of the keeper.
func (d done) key() []byte {
	return append(binary.BigEndian.AppendUint64([]byte{types.DoneByte}, uint64(d.Height)), d.Name...)
}

// DefaultGenesis implements appmodule.HasGenesis: no upgrade is planned or done.
func (Module) DefaultGenesis(to appmodule.GenesisTarget) error {
	return errors.Join(write(to, fieldPlan, nil), write(to, fieldDone, []done{}), write(to, fieldVersion, 0))
}

// ValidateGenesis implements appmodule.HasGenesis.
func (Module) ValidateGenesis(from appmodule.GenesisSource) error {
	_, err := read(from)
	return err
}

// state is the content of a genesis.
type state struct {
	plan    *types.Plan
	done    []done
	version uint64
}

// InitGenesis implements appmodule.HasGenesis.
func (m Module) InitGenesis(ctx context.Context, from appmodule.GenesisSource) error {
	s, err := read(from)
	if err != nil {
		return err
	}
	kv := m.store.OpenKVStore(ctx)
	for _, d := range s.done {
		if err := kv.Set(d.key(), []byte{1}); err != nil {
			return err
		}
	}
	if s.version > 0 {
		if err := kv.Set([]byte{types.ProtocolVersionByte}, binary.BigEndian.AppendUint64(nil, s.version)); err != nil {
			return err
		}
	}
	if s.plan == nil {
		return nil
	}
	return m.keeper.ScheduleUpgrade(ctx, *s.plan)
}

// ExportGenesis implements appmodule.HasGenesis.
func (m Module) ExportGenesis(ctx context.Context, to appmodule.GenesisTarget) error {
	var waiting any
	plan, err := m.keeper.GetUpgradePlan(ctx)
	switch {
	case err == nil:
		waiting = plan
	case !errors.Is(err, types.ErrNoUpgradePlanFound):
		return err
	}
	all, err := m.carriedOut(ctx)
	if err != nil {
		return err
	}
	raised, err := m.store.OpenKVStore(ctx).Get([]byte{types.ProtocolVersionByte})
	if err != nil {
		return err
	}
	var version uint64
	if len(raised) == 8 {
		version = binary.BigEndian.Uint64(raised)
	}
	return errors.Join(write(to, fieldPlan, waiting), write(to, fieldDone, all), write(to, fieldVersion, version))
}

// carriedOut lists the upgrades done, in order of height.
func (m Module) carriedOut(ctx context.Context) ([]done, error) {
	prefix := []byte{types.DoneByte}
	it, err := m.store.OpenKVStore(ctx).Iterator(prefix, storetypes.PrefixEndBytes(prefix))
	if err != nil {
		return nil, err
	}
	all := []done{}
	for ; it.Valid(); it.Next() {
		if key := it.Key(); len(key) > 9 {
			all = append(all, done{Height: int64(binary.BigEndian.Uint64(key[1:9])), Name: string(key[9:])})
		}
	}
	return all, it.Close()
}

func write(to appmodule.GenesisTarget, field string, value any) error {
	w, err := to(field)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(w).Encode(value), w.Close())
}

// read reads and checks a genesis. Missing fields are empty.
func read(from appmodule.GenesisSource) (s state, err error) {
	// the order does not matter
	for field, into := range map[string]any{fieldPlan: &s.plan, fieldDone: &s.done, fieldVersion: &s.version} {
		r, err := from(field)
		if err != nil {
			return s, err
		}
		if r == nil {
			continue
		}
		raw, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return s, err
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return s, fmt.Errorf("upgrade: genesis: %s: %w", field, err)
		}
	}
	for _, d := range s.done {
		if d.Name == "" || d.Height < 1 {
			return s, fmt.Errorf("upgrade: genesis: %q was carried out at height %d", d.Name, d.Height)
		}
	}
	if s.plan != nil {
		return s, s.plan.ValidateBasic()
	}
	return s, nil
}
