package app

import (
	"encoding/json"
	"fmt"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
)

// DefaultGenesis is the state of every module before the first block.
func (a *App) DefaultGenesis() map[string]json.RawMessage { return a.basics.DefaultGenesis(a.Codec) }

// Export returns the state of every module after the latest block, as the genesis of a chain that continues at the next
// height. The heights in it stay valid, and runs, disputes and votes under way continue.
func (a *App) Export() (json.RawMessage, error) {
	ctx, err := a.CreateQueryContext(a.LastBlockHeight(), false)
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	state, err := a.modules.ExportGenesis(ctx.WithGasMeter(storetypes.NewInfiniteGasMeter()), a.Codec)
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	return json.Marshal(state)
}
