# Everything is plain go; this file only names the longer commands.

.PHONY: test check proto
test:
	go test ./...

check:
	./.ci/run

proto:
	$(MAKE) -C chain/proto
	$(MAKE) -C client/api/proto
