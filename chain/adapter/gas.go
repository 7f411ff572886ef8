package adapter

import (
	"context"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Unmetered is a context whose reads and writes cost no gas: the message that makes them pays a fixed price.
func Unmetered(ctx context.Context) sdk.Context {
	return sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
}
