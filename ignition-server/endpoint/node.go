// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/openshift/hypershift/ignition-server/identity"
	"github.com/openshift/hypershift/ignition-server/nodeconfig"
)

// Nodes identifies Nodes by their certificates.
type Nodes interface {
	// Identify returns identity.ErrNotANode and identity.ErrNoMachine for clients that the server rejects.
	Identify(ctx context.Context, chain []*x509.Certificate) (identity.Node, error)
}

func hasCertificate(r *http.Request) bool { return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 }

// identified calls serve if the client's certificate belongs to a Node with a Machine. The TLS connection has proved
// that the client has the key.
func (h *Server) identified(w http.ResponseWriter, r *http.Request, serve func(identity.Node)) {
	if !hasCertificate(r) {
		http.Error(w, "present the client certificate of this machine's kubelet", http.StatusUnauthorized)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), credentialsTimeout)
	defer cancel()
	node, err := h.Nodes.Identify(ctx, r.TLS.PeerCertificates)
	switch {
	case err == nil:
		serve(node)
	case errors.Is(err, identity.ErrNotANode):
		h.refuse(w, http.StatusUnauthorized, node, err.Error())
	case errors.Is(err, identity.ErrNoMachine):
		h.refuse(w, http.StatusForbidden, node, err.Error())
	default:
		h.Log.Error("cannot identify the node", "error", err)
		http.Error(w, "identifying the node failed; retry later", http.StatusServiceUnavailable)
	}
}

// refuse sends the reason of a rejection to a Node and logs it. The reason contains nothing of a configuration.
func (h *Server) refuse(w http.ResponseWriter, status int, node identity.Node, reason string) {
	h.Observer.Refused()
	h.Log.Info("refused a node", "node", node.Name, "nodePool", node.NodePool, "status", status, "reason", reason)
	http.Error(w, reason, status)
}

// serveNode serves the plan of a configuration in the Node's own pool.
func (h *Server) serveNode(w http.ResponseWriter, r *http.Request, node identity.Node, hash string) {
	entry, ok := h.Tokens.Config(node.NodePool, hash)
	switch {
	case !ok:
		h.refuse(w, http.StatusNotFound, node, fmt.Sprintf("there is no configuration %.64q of NodePool %s (yet)", hash, node.NodePool))
		return
	case entry.InPlace == nil:
		h.refuse(w, http.StatusForbidden, node, fmt.Sprintf("NodePool %s replaces its machines: spec.management.upgradeType is not InPlace", node.NodePool))
		return
	case entry.InPlace.Plan == nil:
		h.refuse(w, http.StatusUnprocessableEntity, node, "this configuration cannot be applied in place: "+entry.InPlace.Refusal)
		return
	}
	plan, err := nodeconfig.ForNode(entry.InPlace.Plan, h.server(r))
	if err != nil {
		h.Log.Error("cannot make the plan of a node", "nodePool", node.NodePool, "node", node.Name, "error", err)
		http.Error(w, "the node configuration is damaged", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(plan)))
	if _, err := w.Write(plan); err != nil {
		h.Log.Info("a node hung up", "nodePool", node.NodePool, "node", node.Name, "error", err)
		return
	}
	_ = http.NewResponseController(w).Flush()
	entry.Machine = node.Machine
	h.served(r.Context(), entry)
}

// server returns the host and CA by which the requesting machine knows this server.
func (h *Server) server(r *http.Request) nodeconfig.Server {
	if h.CA == nil {
		return nodeconfig.Server{}
	}
	return nodeconfig.Server{Host: r.Host, CA: h.CA()}
}
