// SPDX-License-Identifier: Apache-2.0

// Package endpoint is the HTTP API of the ignition-server. With the bearer token in its user-data, a machine gets its
// configuration (GET /ignition) and the program node-agent (GET /node-agent/<architecture>). A Node of a pool that is
// updated in place authenticates with the certificate of its kubelet. It gets the plan of a configuration of its pool
// (GET /node-config/<hash>), and the program.
package endpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/identity"
	"github.com/openshift/hypershift/ignition-server/nodeconfig"
	"github.com/openshift/hypershift/ignition-server/token"
)

const (
	// markTimeout limits the writes to the management cluster that follow a served request.
	markTimeout = 10 * time.Second
	// credentialsTimeout limits how long a machine waits for its credentials before it must retry.
	credentialsTimeout = 15 * time.Second
)

// programPath is the path before the architecture.
const programPath = "/node-agent/"

// configPath is the path before the hash of a configuration.
const configPath = "/node-config/"

// architectures are the architectures for which the product's image contains node-agent.
var architectures = []string{"amd64", "arm64"}

var ignitionPath = regexp.MustCompile(`^/ignition[^/\s]*$`)

// Tokens resolves tokens and configuration hashes to their configurations.
type Tokens interface {
	Get(token string) (token.Entry, bool)
	// Config returns the configuration of a pool (<namespace>/<name>) with this hash.
	Config(pool, hash string) (token.Entry, bool)
}

// Credentials adds the credentials of the requesting machine to a configuration.
type Credentials interface {
	Payload(ctx context.Context, e token.Entry) ([]byte, error)
}

// Observer records requests.
type Observer interface {
	// Served is called after a machine got its configuration.
	Served(ctx context.Context, e token.Entry) error
	// Missed is called when a token is unknown.
	Missed()
	// Refused is called when a certificate is rejected.
	Refused()
}

// Server is the HTTP handler.
type Server struct {
	Tokens      Tokens
	Credentials Credentials
	Nodes       Nodes
	Observer    Observer
	// Programs holds node-agent, in a file for each architecture in Go's spelling.
	Programs fs.FS
	// CA returns the server's CA (PEM), with which Nodes verify the server later. CA may be nil, or return an empty
	// result, if the CA is unknown.
	CA  func() []byte
	Log *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arch, isProgram := strings.CutPrefix(r.URL.Path, programPath)
	hash, isConfig := strings.CutPrefix(r.URL.Path, configPath)
	switch {
	case r.URL.Path == "/healthz": // A server that answers is healthy.
	case r.Method != http.MethodGet && (isProgram || isConfig || ignitionPath.MatchString(r.URL.Path)):
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is served here", http.StatusMethodNotAllowed)
	case ignitionPath.MatchString(r.URL.Path):
		h.authorized(w, r, h.serve)
	case isConfig:
		h.identified(w, r, func(node identity.Node) { h.serveNode(w, r, node, hash) })
	case isProgram && r.Header.Get("Authorization") == "" && hasCertificate(r):
		h.identified(w, r, func(identity.Node) { h.program(w, arch) })
	case isProgram:
		h.authorized(w, r, func(w http.ResponseWriter, _ *http.Request, _ token.Entry) { h.program(w, arch) })
	default:
		http.NotFound(w, r)
	}
}

// authorized calls serve with the entry of the request's token, and rejects requests without a valid token.
func (h *Server) authorized(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request, token.Entry)) {
	bearer, ok := bearerToken(r.Header.Get("Authorization"))
	if !ok {
		http.Error(w, "send the token of the user-data as \"Authorization: Bearer <base64>\"", http.StatusUnauthorized)
		return
	}
	entry, ok := h.Tokens.Get(bearer)
	if !ok {
		// Ignition stops on 4xx and retries on 5xx: the token may be added to the cache soon.
		h.Observer.Missed()
		http.Error(w, "there is no node configuration for this token (yet)", http.StatusNetworkAuthenticationRequired)
		return
	}
	serve(w, r, entry)
}

func (h *Server) serve(w http.ResponseWriter, r *http.Request, entry token.Entry) {
	if !json.Valid(entry.Payload) {
		http.Error(w, "the node configuration of this token is damaged", http.StatusInternalServerError)
		return
	}
	payload, ok := h.personal(w, r, entry)
	if !ok {
		return
	}
	payload, err := h.withProgram(r, entry, payload)
	if err != nil {
		h.Log.Error("cannot add node-agent to the configuration", "nodePool", entry.NodePool, "error", err)
		http.Error(w, "this ignition-server has no node-agent for the machines of this pool", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(payload)))
	if _, err := w.Write(payload); err != nil {
		h.Log.Info("a machine hung up", "nodePool", entry.NodePool, "error", err)
		return
	}
	// The machine must not wait for the calls below. A writer that cannot flush sends everything when the handler
	// returns.
	_ = http.NewResponseController(w).Flush()
	h.served(r.Context(), entry)
}

// program serves node-agent with its checksum (RFC 9530), so that the machine can verify that the download is complete.
func (h *Server) program(w http.ResponseWriter, arch string) {
	if !slices.Contains(architectures, arch) {
		http.Error(w, "there is no node-agent for this architecture; there is one for "+strings.Join(architectures, " and "), http.StatusNotFound)
		return
	}
	program, err := fs.ReadFile(h.Programs, arch)
	if err != nil {
		h.Log.Error("cannot read node-agent", "architecture", arch, "error", err)
		http.Error(w, "this ignition-server's image has no node-agent for the architecture", http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256(program)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(program)))
	w.Header().Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	if _, err := w.Write(program); err != nil {
		h.Log.Info("a machine hung up", "architecture", arch, "error", err)
	}
}

// withProgram makes Ignition fetch node-agent in the same way as its configuration: from the same address, with the
// same token.
func (h *Server) withProgram(r *http.Request, entry token.Entry, payload []byte) ([]byte, error) {
	return nodeconfig.WithProgram(payload, func() (nodeconfig.Program, error) {
		arch := cmp.Or(entry.Architecture, hyperv1.ArchitectureAMD64)
		content, err := fs.ReadFile(h.Programs, arch)
		if err != nil {
			return nodeconfig.Program{}, fmt.Errorf("read node-agent for %s: %w", arch, err)
		}
		return nodeconfig.Program{
			URL: "https://" + r.Host + programPath + arch, Authorization: r.Header.Get("Authorization"), Content: content, Server: h.server(r),
		}, nil
	})
}

// personal returns the configuration with the machine's own credentials. If they cannot be created, because the guest's
// API is unavailable, the machine must retry.
func (h *Server) personal(w http.ResponseWriter, r *http.Request, entry token.Entry) ([]byte, bool) {
	ctx, cancel := context.WithTimeout(r.Context(), credentialsTimeout)
	defer cancel()
	payload, err := h.Credentials.Payload(ctx, entry)
	if err != nil {
		h.Log.Error("cannot make the credentials of a machine", "nodePool", entry.NodePool, "machine", entry.Machine, "error", err)
		http.Error(w, "creating the join credentials of this machine failed; retry later", http.StatusServiceUnavailable)
		return nil, false
	}
	return payload, true
}

func (h *Server) served(ctx context.Context, entry token.Entry) {
	// The machine may close the connection as soon as it has its configuration. The request must be recorded even then.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	h.Log.Info("served a node configuration", "nodePool", entry.NodePool, "machine", entry.Machine, "secret", entry.Secret.Name)
	if err := h.Observer.Served(ctx, entry); err != nil {
		h.Log.Error("cannot mark the token as used", "secret", entry.Secret.Name, "error", err)
	}
}

func bearerToken(header string) (string, bool) {
	encoded, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return "", false
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	return string(decoded), err == nil && len(decoded) > 0
}
