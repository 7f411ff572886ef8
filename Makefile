# Everything is plain go; this file only names the longer commands.

.PHONY: test check race proto
test:
	go test ./...

check:
	./.ci/run

race:
	go test -race -timeout 40m -skip 'Methods|Simulat|Advi|Generate|BaseModel|FineTuning' ./network/... ./node

proto:
	$(MAKE) -C chain/proto
	$(MAKE) -C client/api/proto
