// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

interface IPayout {
    function deposit(address token, uint256 amount, bytes20 to) external;
}

/// A token for tests that breaks the rules of ERC-20 in one way.
contract OddToken {
    enum Way {
        NoAnswer, // as USDT: nothing is returned
        False, // returns false and moves nothing
        Fee, // moves less than asked for
        Again // deposits again during a deposit
    }

    Way public immutable way;
    mapping(address => uint256) public balanceOf;
    bool private again;

    constructor(Way way_) {
        way = way_;
    }

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
    }

    function transfer(address to, uint256 value) external {
        _move(msg.sender, to, value);
    }

    function transferFrom(address from, address to, uint256 value) external {
        if (way == Way.Again && !again) {
            again = true;
            IPayout(msg.sender).deposit(address(this), value, bytes20(from));
        }
        _move(from, to, value);
    }

    function _move(address from, address to, uint256 value) private {
        if (way == Way.False) _answer(0);
        balanceOf[from] -= value;
        balanceOf[to] += way == Way.Fee ? value - value / 100 : value;
        if (way != Way.NoAnswer) _answer(1);
    }

    function _answer(uint256 value) private pure {
        assembly {
            mstore(0, value)
            return(0, 32)
        }
    }
}
