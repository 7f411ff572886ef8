package adapter

import (
	"context"
	"io"
	"strings"

	"cosmossdk.io/core/appmodule"
)

var _ appmodule.HasGenesis = Module{}

// The genesis of a module is its whole state, one list per collection, so that an export is complete.

// DefaultGenesis implements appmodule.HasGenesis: every collection is empty.
func (m Module) DefaultGenesis(to appmodule.GenesisTarget) error { return m.State.DefaultGenesis(to) }

// ValidateGenesis implements appmodule.HasGenesis.
func (m Module) ValidateGenesis(from appmodule.GenesisSource) error {
	return m.State.ValidateGenesis(whole(from))
}

// InitGenesis implements appmodule.HasGenesis.
func (m Module) InitGenesis(ctx context.Context, from appmodule.GenesisSource) error {
	return m.State.InitGenesis(ctx, whole(from))
}

// ExportGenesis implements appmodule.HasGenesis.
func (m Module) ExportGenesis(ctx context.Context, to appmodule.GenesisTarget) error {
	return m.State.ExportGenesis(ctx, to)
}

// whole treats a collection that is missing in a genesis as empty.
func whole(from appmodule.GenesisSource) appmodule.GenesisSource {
	return func(collection string) (io.ReadCloser, error) {
		r, err := from(collection)
		if r == nil && err == nil {
			r = io.NopCloser(strings.NewReader("[]"))
		}
		return r, err
	}
}
