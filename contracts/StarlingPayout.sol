// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

interface IERC20 {
    function balanceOf(address account) external view returns (uint256);
}

/// ZEN on this chain: an ERC-20 token that its creator alone mints, against claims, and burns, for deposits.
contract WrappedZen {
    string public constant name = "Wrapped ZEN";
    string public constant symbol = "wZEN";
    uint8 public constant decimals = 6;

    address public immutable payout = msg.sender;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error OnlyPayout();
    error Balance();
    error Allowance();
    error NoAddress();

    modifier onlyPayout() {
        require(msg.sender == payout, OnlyPayout());
        _;
    }

    function mint(address to, uint256 value) external onlyPayout {
        totalSupply += value;
        unchecked {
            balanceOf[to] += value; // at most totalSupply
        }
        emit Transfer(address(0), to, value);
    }

    function burn(address from, uint256 value) external onlyPayout {
        _take(from, value);
        unchecked {
            totalSupply -= value;
        }
        emit Transfer(from, address(0), value);
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed != type(uint256).max) {
            require(allowed >= value, Allowance());
            unchecked {
                allowance[from][msg.sender] = allowed - value;
            }
        }
        _move(from, to, value);
        return true;
    }

    function _move(address from, address to, uint256 value) private {
        require(to != address(0), NoAddress());
        _take(from, value);
        unchecked {
            balanceOf[to] += value;
        }
        emit Transfer(from, to, value);
    }

    function _take(address from, uint256 value) private {
        uint256 balance = balanceOf[from];
        require(balance >= value, Balance());
        unchecked {
            balanceOf[from] = balance - value;
        }
    }
}

/// Pays out what accounts of a Starling network have withdrawn to this chain, and takes deposits for it.
///
/// Validators of the network with two thirds of its stake sign one Merkle root for each epoch, over the total that each
/// account may have claimed in each token since the beginning, and the set of validators that signs next. Totals make
/// an epoch that is skipped lose nothing, and a claim against an old root pay nothing twice. The contract has no owner,
/// and no function that moves tokens but claims of signed totals. Any account may call each function.
contract StarlingPayout {
    /// Signatures of a set of validators (BLS12-381, keys in G2, signatures in G1, in the encoding of EIP-2537).
    struct Certificate {
        bytes key; // sum of the keys of all members, 256 bytes
        uint256 power; // of the members
        uint256 total; // of all validators, also of those without a key
        bytes32 members; // Merkle root over the members
        Absent[] absent; // members that have not signed, by rising index
        bytes signature; // sum of the signatures, 128 bytes
    }

    struct Absent {
        uint256 index;
        uint256 power;
        bytes key; // 256 bytes
        bytes32[] proof; // of the leaf of index, power and the digest of the key
    }

    /// What an account may have claimed in all, in base units of a token.
    struct Claim {
        address account;
        address token;
        uint256 total;
        bytes32[] proof;
    }

    bytes32 private constant ROOT = keccak256("starling payout root 1");
    bytes32 private constant HANDOVER = keccak256("starling payout handover 1");
    bytes private constant DST = "STARLING-PAYOUT-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_\x3d"; // with its length
    uint256 private constant P_HIGH = 0x1a0111ea397fe69a4b1ba7b6434bacd7;
    uint256 private constant P_LOW = 0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;
    /// Digest of the identifier of the Starling network.
    bytes32 public immutable network;
    WrappedZen public immutable zen;

    uint64 public setNumber;
    uint64 public lastEpoch;
    uint64 public deposits; // number of them
    bytes32 public set; // digest of the set of validators that signs
    bytes32 public root; // of the last epoch
    bytes32 public rootBefore; // of the epoch before: it pays claims that were under way
    mapping(address account => mapping(address token => uint256)) public claimed;
    bool private transient busy;

    event Root(uint64 indexed epoch, bytes32 root);
    event Handover(uint64 indexed number, bytes32 set);
    event Claimed(address indexed account, address indexed token, uint256 amount, uint256 total);
    event Deposit(uint64 indexed number, address indexed token, address from, bytes20 to, uint256 amount);

    error Epoch();
    error Set();
    error Member();
    error Power();
    error Encoding();
    error Signature();
    error Proof();
    error Precompile();
    error Token();
    error Amount();
    error Busy();

    modifier once() {
        require(!busy, Busy());
        busy = true;
        _;
        busy = false;
    }

    constructor(bytes32 network_, uint64 setNumber_, bytes32 set_) {
        network = network_;
        setNumber = setNumber_;
        set = set_;
        zen = new WrappedZen();
    }

    /// Stores the root of an epoch later than all before.
    function submitRoot(uint64 epoch, bytes32 root_, Certificate calldata c) external {
        require(epoch > lastEpoch, Epoch());
        _verify(keccak256(abi.encode(ROOT, network, block.chainid, address(this), epoch, root_)), c);
        lastEpoch = epoch;
        rootBefore = root;
        root = root_;
        emit Root(epoch, root_);
    }

    /// Replaces the set of validators by the next ones, each of which the set before has signed.
    function handover(bytes32[] calldata next, Certificate[] calldata c) external {
        require(next.length == c.length, Encoding());
        for (uint256 i; i < next.length; ++i) {
            uint64 number = setNumber + 1;
            _verify(keccak256(abi.encode(HANDOVER, network, number, next[i])), c[i]);
            setNumber = number;
            set = next[i];
            emit Handover(number, next[i]);
        }
    }

    /// Pays accounts what they have not claimed of their totals in the last root, or in the one before. Claims that are
    /// paid already are skipped.
    function claim(Claim[] calldata claims) external once {
        (bytes32 last, bytes32 before) = (root, rootBefore);
        for (uint256 i; i < claims.length; ++i) {
            Claim calldata c = claims[i];
            bytes32 leaf = keccak256(bytes.concat(keccak256(abi.encode(c.account, c.token, c.total))));
            bytes32 top = _root(leaf, c.proof);
            require(top == last || top == before, Proof());
            uint256 had = claimed[c.account][c.token];
            if (c.total <= had) continue;
            claimed[c.account][c.token] = c.total;
            uint256 amount = c.total - had;
            if (c.token == address(zen)) zen.mint(c.account, amount);
            else _call(c.token, abi.encodeWithSignature("transfer(address,uint256)", c.account, amount));
            emit Claimed(c.account, c.token, amount, c.total);
        }
    }

    /// Takes tokens of the sender, to be credited to an account of the Starling network: the 20 bytes of its address.
    /// The sender has approved the amount, except of ZEN.
    function deposit(address token, uint256 amount, bytes20 to) external once {
        require(amount > 0 && to != 0, Amount());
        if (token == address(zen)) {
            zen.burn(msg.sender, amount);
        } else {
            uint256 before = IERC20(token).balanceOf(address(this));
            _call(
                token,
                abi.encodeWithSignature("transferFrom(address,address,uint256)", msg.sender, address(this), amount)
            );
            require(IERC20(token).balanceOf(address(this)) == before + amount, Amount());
        }
        emit Deposit(++deposits, token, msg.sender, to, amount);
    }

    /// Calls a token, which returns true or nothing.
    function _call(address token, bytes memory data) private {
        (bool ok, bytes memory answer) = token.call(data);
        require(ok && token.code.length > 0, Token());
        require(answer.length == 0 || abi.decode(answer, (bool)), Token());
    }

    /// Root of the tree of sorted pairs with a leaf and its path.
    function _root(bytes32 node, bytes32[] calldata proof) private pure returns (bytes32) {
        for (uint256 i; i < proof.length; ++i) {
            bytes32 other = proof[i];
            assembly ("memory-safe") {
                let swap := gt(node, other)
                mstore(shl(5, swap), node)
                mstore(shl(5, iszero(swap)), other)
                node := keccak256(0, 64)
            }
        }
        return node;
    }

    /// Reverts unless members of the present set with two thirds of all power have signed a message.
    function _verify(bytes32 message, Certificate calldata c) private view {
        require(c.key.length == 256 && c.signature.length == 128, Encoding());
        require(keccak256(abi.encode(keccak256(c.key), c.power, c.total, c.members)) == set, Set());
        // The input of the pairing: the point of the message, the key of those that signed, the signature, a generator.
        uint256 input = _memory(768);
        _hash(message, input);
        uint256 key = input + 128;
        uint256 power = c.power;
        for (uint256 i; i < c.absent.length; ++i) {
            Absent calldata a = c.absent[i];
            require(a.key.length == 256 && (i == 0 || a.index > c.absent[i - 1].index), Member());
            bytes32 hash = _load(i == 0 ? key : key + 256, a.key);
            bytes32 leaf = keccak256(bytes.concat(keccak256(abi.encode(a.index, a.power, hash))));
            require(_root(leaf, a.proof) == c.members, Member());
            power -= a.power;
            if (i > 0) _run(0x0d, key, 512, key, 256);
        }
        require(3 * power >= 2 * c.total, Power());
        if (c.absent.length > 0) _negate(key);
        _load(c.absent.length > 0 ? key + 256 : key, c.key);
        if (c.absent.length > 0) _run(0x0d, key, 512, key, 256);
        _load(key + 256, c.signature);
        assembly ("memory-safe") {
            let g := add(key, 384) // the generator of G2, negated
            mstore(g, 0x00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051)
            mstore(add(g, 32), 0xc6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8)
            mstore(add(g, 64), 0x0000000000000000000000000000000013e02b6052719f607dacd3a088274f65)
            mstore(add(g, 96), 0x596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e)
            mstore(add(g, 128), 0x000000000000000000000000000000000d1b3cc2c7027888be51d9ef691d77bc)
            mstore(add(g, 160), 0xb679afda66c73f17f9ee3837a55024f78c71363275a75d75d86bab79f74782aa)
            mstore(add(g, 192), 0x0000000000000000000000000000000013fa4d4a0ad8b1ce186ed5061789213d)
            mstore(add(g, 224), 0x993923066dddaf1040bc3ff59f825c78df74f2d75467e25e0f55f8a00fa030ed)
        }
        _run(0x0f, input, 768, input, 32);
        assembly ("memory-safe") {
            power := mload(input)
        }
        require(power == 1, Signature());
    }

    /// Hashes a message to a point of G1 (RFC 9380, BLS12381G1_XMD:SHA-256_SSWU_RO_, tag DST). It uses 256 bytes of
    /// memory, and leaves the point in the first half.
    function _hash(bytes32 message, uint256 to) private view {
        bytes32 b0 = sha256(bytes.concat(bytes32(0), bytes32(0), message, hex"008000", DST));
        bytes32 b1 = sha256(bytes.concat(b0, hex"01", DST));
        bytes32 b2 = sha256(bytes.concat(b0 ^ b1, hex"02", DST));
        bytes32 b3 = sha256(bytes.concat(b0 ^ b2, hex"03", DST));
        bytes32 b4 = sha256(bytes.concat(b0 ^ b3, hex"04", DST));
        _map(b1, b2, to);
        _map(b3, b4, to + 128);
        _run(0x0b, to, 256, to, 128);
    }

    /// Maps 64 bytes, modulo the order of the field, to a point of G1.
    function _map(bytes32 high, bytes32 low, uint256 to) private view {
        bytes memory power = abi.encodePacked(uint256(64), uint256(1), uint256(64), high, low, uint8(1), P_HIGH, P_LOW);
        uint256 input;
        assembly ("memory-safe") {
            input := add(power, 32)
        }
        _run(0x05, input, 225, input, 64);
        _run(0x10, input, 64, to, 128);
    }

    /// Negates a point of G2 in place: both parts of its y.
    function _negate(uint256 point) private pure {
        for (uint256 part = point + 128; part < point + 256; part += 64) {
            assembly ("memory-safe") {
                let high := mload(part)
                let low := mload(add(part, 32))
                if or(high, low) {
                    mstore(part, sub(sub(P_HIGH, high), gt(low, P_LOW)))
                    mstore(add(part, 32), sub(P_LOW, low))
                }
            }
        }
    }

    /// Reserves memory.
    function _memory(uint256 size) private pure returns (uint256 start) {
        bytes memory reserved = new bytes(size);
        assembly ("memory-safe") {
            start := add(reserved, 32)
        }
    }

    /// Copies bytes of the call to memory, and returns their digest.
    function _load(uint256 to, bytes calldata from) private pure returns (bytes32 digest) {
        assembly ("memory-safe") {
            calldatacopy(to, from.offset, from.length)
            digest := keccak256(to, from.length)
        }
    }

    /// Calls a precompiled contract that returns so many bytes.
    function _run(uint256 precompile, uint256 from, uint256 length, uint256 to, uint256 size) private view {
        bool ok;
        assembly ("memory-safe") {
            ok := staticcall(gas(), precompile, from, length, to, size)
            ok := and(ok, eq(returndatasize(), size))
        }
        require(ok, Precompile());
    }
}
