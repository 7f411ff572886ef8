package api

import "embed"

// Source is the source of this package, whose comments are the descriptions of /openapi.json.
//
//go:embed api.go network.go openai.go
var Source embed.FS
